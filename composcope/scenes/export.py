"""Scenes as files: PNGs with the official JSON, WebDataset shards, or Parquet shards.

file k is a function of (job, k), whole or not there: a job that was stopped makes what is left"""

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from composcope import __version__, progress
from composcope.errors import InputError, check_name
from composcope.files import clear, is_partial, locked, whole, write_text
from composcope.scenes.clevr import image_filename, to_struct
from composcope.scenes.render import Size, frame_size, render
from composcope.scenes.rules import Rules, draw, sample

SHARD = 1000  # images in a shard
CHUNK = 64  # images in memory as pixels at a time, if they are not large
PIXELS = 2**24  # in memory at a time
BYTES = 2**28  # of encoded images in memory at a time


@dataclass(frozen=True)
class Job:
    """What is to be made: scenes 0 .. num - 1 of a seed."""

    num: int
    size: Size = 128
    format: str = "clevr"
    rules: Rules = field(default_factory=Rules)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num < 1:
            raise InputError(f"the number of images is at least 1, not {self.num}")
        check_name("format", self.format, WRITERS)
        if self.format == "parquet":
            parquet()
        frame_size(self.size)


@dataclass(frozen=True)
class Example:
    """One scene as it goes into a file."""

    index: int
    png: bytes
    struct: dict[str, Any]


Tick = Callable[[int], None]  # told how many more images are there


def export(job: Job, out: str | Path) -> None:
    """Make the files of a job in the folder `out`, but for those that are there."""
    out, most = Path(out), job.rules.objects[1]
    # Impossible rules are said before a file is made.
    sample(job.seed, 0, replace(job.rules, objects=(most, most)))
    with locked(out), progress.bar() as bar:
        clear(out)  # also of job.json itself, which a killed process may not have finished
        claim(job, out)
        task = bar.add_task("scenes", total=job.num)
        try:
            WRITERS[job.format](job, out, lambda more: bar.advance(task, more))
        except InputError:  # rules that a later scene cannot meet
            if {file.name for file in out.iterdir()} <= {"job.json", ".lock"}:
                (out / "job.json").unlink()
            raise


def claim(job: Job, out: Path) -> None:
    """Say in job.json what the folder holds; a folder that holds anything else is left alone."""
    about = asdict(replace(job, size=frame_size(job.size))) | {"composcope": __version__}
    text, file = json.dumps(about, indent=1), out / "job.json"
    if file.exists():
        if file.read_text(encoding="utf-8") != text:
            advice = "repeat that job or choose another folder"
            raise InputError(f"{out} holds other scenes (see {file}); {advice}")
    elif any(other.name != ".lock" and not is_partial(other) for other in out.iterdir()):
        reason = "is not empty and holds no scenes of this command"
        raise InputError(f"{out} {reason}; choose another folder")
    else:
        write_text(file, text)


def chunk(job: Job) -> int:
    """How many images are in memory at a time."""
    width, height = frame_size(job.size)
    return max(1, min(CHUNK, PIXELS // (width * height)))


def spans(indices: range, length: int) -> Iterator[range]:
    """Indices one after the other, so many at a time."""
    return (indices[first : first + length] for first in range(0, len(indices), length))


def examples(job: Job, indices: range, tick: Tick) -> Iterator[Example]:
    """Scenes rendered and encoded, a few in memory at a time."""
    with ThreadPoolExecutor() as pool:
        for some in spans(indices, chunk(job)):
            scenes = draw(job.seed, some.start, len(some), job.rules)
            images = pool.map(encoded, render(scenes, job.size))
            for index, scene, png in zip(some, scenes, images, strict=True):
                yield Example(index, png, to_struct(scene, index, frame_size(job.size)))
                tick(1)


def encoded(image: np.ndarray) -> bytes:
    """An image as a PNG file, packed quickly rather than tightly."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", compress_level=1)
    return file.getvalue()


def write_clevr(job: Job, out: Path, tick: Tick) -> None:
    """images/*.png and, last, CLEVR_scenes.json."""
    # A file is waited for until it is on the disk, so several at a time.
    with ThreadPoolExecutor() as pool:
        for indices in spans(range(job.num), chunk(job)):
            if all((out / "images" / image_filename(i)).exists() for i in indices):
                tick(len(indices))
                continue
            for _ in pool.map(partial(write_image, out / "images"), examples(job, indices, tick)):
                pass
    if not (out / "CLEVR_scenes.json").exists():
        with whole(out / "CLEVR_scenes.json") as path, open(path, "w", encoding="utf-8") as file:
            file.writelines(scenes_json(job))


def write_image(folder: Path, example: Example) -> None:
    file = folder / image_filename(example.index)
    if not file.exists():
        with whole(file) as path:
            path.write_bytes(example.png)


def scenes_json(job: Job) -> Iterator[str]:
    """The official file, a scene at a time: a million scenes do not fit in memory as JSON."""
    info = {"info": {"date": "", "version": "1.0", "split": "new", "license": ""}}
    yield json.dumps(info)[:-1] + ', "scenes": [\n'
    for indices in spans(range(job.num), SHARD):
        scenes = draw(job.seed, indices.start, len(indices), job.rules)
        for index, scene in zip(indices, scenes, strict=True):
            end = ",\n" if index < job.num - 1 else "\n]}\n"
            yield json.dumps(to_struct(scene, index, frame_size(job.size))) + end


def write_shards(
    job: Job, out: Path, tick: Tick, suffix: str, write: Callable[[Iterator[Example], Path], None]
) -> None:
    """scenes-000000.suffix and so on."""
    for shard, indices in enumerate(spans(range(job.num), SHARD)):
        file = out / f"scenes-{shard:06d}.{suffix}"
        if file.exists():
            tick(len(indices))
            continue
        with whole(file) as path:
            write(examples(job, indices, tick), path)


def write_tar(of: Iterator[Example], file: Path) -> None:
    """WebDataset: files that share a key are one example; nothing tells when they were made."""
    with tarfile.open(file, "w", format=tarfile.USTAR_FORMAT) as tar:
        for example in of:
            parts = {"png": example.png, "json": json.dumps(example.struct).encode()}
            for suffix, content in parts.items():
                entry = tarfile.TarInfo(f"{example.index:08d}.{suffix}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))


def write_parquet(of: Iterator[Example], file: Path) -> None:
    """Columns `index`, `image` (bytes and file name, as image libraries do), `scene` (JSON)."""
    pyarrow = parquet()
    first = next(of)
    schema = pyarrow.Table.from_pylist([parquet_row(first)]).schema
    with pyarrow.parquet.ParquetWriter(file, schema, compression="none") as out:
        rows, size = [], 0
        for example in chain([first], of):
            rows.append(parquet_row(example))
            size += len(example.png)
            if size > BYTES:
                out.write_table(pyarrow.Table.from_pylist(rows, schema))
                rows, size = [], 0
        if rows:
            out.write_table(pyarrow.Table.from_pylist(rows, schema))


def parquet_row(example: Example) -> dict[str, Any]:
    image = {"bytes": example.png, "path": example.struct["image_filename"]}
    return {"index": example.index, "image": image, "scene": json.dumps(example.struct)}


def parquet() -> Any:
    """pyarrow, which reads and writes Parquet; it is large, and so an extra."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'composcope[parquet]'") from None
    return pyarrow


WRITERS: dict[str, Callable[[Job, Path, Tick], None]] = {
    "clevr": write_clevr,
    "webdataset": lambda job, out, tick: write_shards(job, out, tick, "tar", write_tar),
    "parquet": lambda job, out, tick: write_shards(job, out, tick, "parquet", write_parquet),
}
