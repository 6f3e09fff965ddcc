"""Pictures on disk and what is known of each: the layouts that `train --data DIR` reads.

    DIR/metadata.jsonl      {"file_name": "a.png", "words": ["cat", "red"]} a line, or metadata.csv
                            (the ImageFolder of Hugging Face datasets)
    DIR/*.tar               WebDataset shards of `composcope scenes --format webdataset`
    DIR/*.parquet           those of `--format parquet`; held in memory
    DIR/CLEVR_scenes.json   or DIR/scenes/*.json, with the pictures in DIR/images or images/SPLIT

A picture stays on disk until it is read."""

import csv
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from composcope.errors import InputError, told_at
from composcope.files import parse_json, read_lines
from composcope.pictures import picture_size, read_picture
from composcope.scenes.clevr import pixel_coords, structs, to_scene
from composcope.scenes.condition import word
from composcope.scenes.export import parquet
from composcope.scenes.scene import CAMERA, Scene, Seen

NAME = "file_name"  # the field of metadata that says which picture is meant
LISTS = "metadata.jsonl", "metadata.csv"
SUFFIXES = ".png", ".jpg", ".jpeg"
MEMORY = 2**33  # bytes of Parquet that are held at most


@dataclass(frozen=True)
class Slice:
    """A file inside another one."""

    path: Path
    start: int
    size: int

    def read(self) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(self.start)
            return file.read(self.size)


@dataclass(frozen=True, eq=False)
class Cell:
    """A row of a column of pictures in memory."""

    column: Any
    row: int

    def read(self) -> bytes:
        cell = self.column[self.row].as_py() or {}
        if not isinstance(cell.get("bytes"), bytes):
            raise InputError("the cell of the picture is empty")
        return cell["bytes"]


Picture = Path | Slice | Cell
Pictured = tuple[Picture, dict[str, Any], str]  # a picture, its scene as JSON, where that is


@dataclass(frozen=True)
class Item:
    """A picture, what it shows, and how to speak of it in an error.

    `shows` is a scene, or the fields of metadata."""

    picture: Picture
    shows: Scene | Seen | dict[str, Any]
    where: str


def items(path: str | Path, view: str = "full") -> list[Item]:
    """All that a folder holds."""
    path = Path(path)
    if not path.is_dir():
        raise InputError(f"{path} is not a folder of pictures with metadata, scenes or shards")
    if any((path / name).is_file() for name in LISTS):
        return list(of_metadata(path))
    if any(path.glob("*.tar")):
        found = of_tars(path)
    elif any(path.glob("*.parquet")):
        found = of_parquet(path)
    elif is_data(path):
        found = of_clevr(path)
    else:
        raise InputError(
            f"{path} does not say what its pictures show: it has no {' or '.join(LISTS)}, no "
            "shards and no CLEVR scenes; without conditions: composcope train images --data"
        )
    return [scene_item(*one, view) for one in found]


def is_data(path: Path) -> bool:
    """Whether a folder has one of the layouts, and is not just a folder of pictures."""
    named = any((path / name).exists() for name in (*LISTS, "CLEVR_scenes.json", "scenes"))
    return named or any(path.glob("*.tar")) or any(path.glob("*.parquet"))


def of_metadata(path: Path) -> Iterator[Item]:
    for where, row in metadata_rows(path):
        name = row.pop(NAME, None)
        if not isinstance(name, str) or not name:
            raise InputError(f"{where}: the field `{NAME}` is missing or not a name")
        picture = path / name
        if not is_inside(name) or not picture.is_file():
            raise InputError(f"{where}: there is no picture {name!r} in {path}")
        yield Item(picture, row, where)


def is_inside(name: str) -> bool:
    """Whether a name in a file cannot lead out of the file's own folder."""
    return ".." not in Path(name).parts and not Path(name).is_absolute()


def metadata_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lines of the metadata of a folder, each with where it is."""
    file = path / LISTS[0]
    if file.is_file():
        lines: list[dict[str, Any]] = read_lines(file, dict)
        for number, row in enumerate(lines, start=1):
            yield f"{file}, row {number}", row
        return
    file = path / LISTS[1]
    try:
        with open(file, encoding="utf-8-sig", newline="") as text:
            for number, line in enumerate(csv.DictReader(text), start=1):
                if None in line or None in line.values():
                    raise InputError(f"{file}, row {number}: not as many fields as in the first")
                yield f"{file}, row {number}", dict(line)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not a table of comma-separated values ({error})") from None


def conditions(fields: dict[str, Any], field: str | None, where: str) -> list:
    """The conditions in one field of metadata; which one need not be said if there is no other.

    A list is itself, also when it is written as JSON in a text. Any other text is one condition, or
    several with commas or semicolons between them. Nothing is no condition."""
    names = ", ".join(fields)
    if not fields:
        raise InputError(f"{where}: beside `{NAME}` a field with the conditions is needed")
    if field is None and len(fields) != 1:
        raise InputError(f"{where}: say with --field which field has the conditions: {names}")
    field = next(iter(fields)) if field is None else field
    if field not in fields:
        raise InputError(f"{where}: there is no field {field!r}; the fields are {names}")
    value = fields[field]
    if value is None:
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = parse_json(value, list, where)
    if isinstance(value, str):
        parts = (part.strip() for part in value.replace(";", ",").split(","))
        return [part for part in parts if part]
    return value if isinstance(value, list) else [value]


def vocabulary_of(path: str | Path, field: str | None = None) -> tuple[str, ...]:
    """All the words that are conditions of some picture in a folder, in order of the alphabet."""
    found: set[str] = set()
    for item in items(path):
        if not isinstance(item.shows, dict):
            advice = f"a vocabulary is made from {' or '.join(LISTS)}"
            raise InputError(f"{path} holds scenes, not words; {advice}")
        values = conditions(item.shows, field, item.where)
        found |= {word(value, item.where) for value in values}
    if not found:
        raise InputError(f"{path} has no words to make a vocabulary from")
    return tuple(sorted(found))


def of_clevr(path: Path) -> Iterator[Pictured]:
    official = path / "CLEVR_scenes.json"
    for struct, where in structs(official if official.exists() else path / "scenes"):
        yield clevr_picture(path, struct, where), struct, where


def clevr_picture(path: Path, struct: dict, where: str) -> Path:
    name = struct.get("image_filename")
    if not isinstance(name, str) or not is_inside(name):
        raise InputError(f"{where}: the field `image_filename` is missing or not a name")
    for file in (
        path / "images" / name,
        path / "images" / Path(str(struct.get("split"))).name / name,
    ):
        if file.exists():
            return file
    raise InputError(f"{where}: there is no image {path / 'images' / name}")


def of_tars(path: Path) -> Iterator[Pictured]:
    """Two files of one key are an example: the picture, and its scene as JSON."""
    for shard in sorted(path.glob("*.tar")):
        pictures: dict[str, Slice] = {}
        scenes: dict[str, Slice] = {}
        try:
            with tarfile.open(shard, "r:") as tar:
                reached = -1
                for entry in tar:
                    if entry.size < 0 or entry.offset <= reached:  # else it may go round for ever
                        raise InputError(f"{entry.name} has a negative size")
                    reached = entry.offset
                    key, suffix = key_and_suffix(entry.name)
                    kind = scenes if suffix == ".json" else pictures
                    if entry.isfile() and suffix in (*SUFFIXES, ".json"):
                        kind[key] = Slice(shard, entry.offset_data, entry.size)
        except (tarfile.TarError, OSError, ValueError) as error:
            raise InputError(f"{shard} is not a shard ({error})") from None
        for key, picture in pictures.items():
            where = f"{shard}, {key}"
            if key not in scenes:
                raise InputError(f"{where}: the picture has no scene, {key}.json")
            yield picture, parse_json(scenes[key].read(), dict, where), where


def key_and_suffix(name: str) -> tuple[str, str]:
    """Of a file in a shard: ./a/000.PNG has the key ./a/000, and its suffix is .png."""
    folder, slash, last = name.rpartition("/")
    stem, dot, suffix = last.partition(".")
    return folder + slash + stem, (dot + suffix).lower()


def of_parquet(path: Path) -> Iterator[Pictured]:
    """Columns `image` (PNG bytes and a name) and `scene` (JSON)."""
    pyarrow = parquet()
    shards = sorted(path.glob("*.parquet"))
    if sum(shard.stat().st_size for shard in shards) > MEMORY:
        raise InputError(
            f"{path} has more than {MEMORY >> 30} GB of Parquet, which is held in memory; export "
            "it as --format webdataset, which is not"
        )
    for shard in shards:
        try:
            table = pyarrow.parquet.read_table(shard, columns=["image", "scene"])
            scenes = table.column("scene").to_pylist()
            images = table.column("image").combine_chunks()
            Cell(images, 0).read() if scenes else None
        except (pyarrow.ArrowException, OSError, KeyError, AttributeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"{shard} is not a shard of `image` and `scene` ({reason})") from None
        for row, scene in enumerate(scenes):
            where = f"{shard}, row {row}"
            yield Cell(images, row), parse_json(scene or "", dict, where), where


def scene_item(picture: Picture, struct: dict, where: str, view: str) -> Item:
    """A scene's picture, and where on the view of it the objects are.

    Where pixel_coords are recorded, places are these as fractions of the picture."""
    scene = to_scene(struct | {"camera_location": struct.get("camera_location", CAMERA)}, where)
    coords = pixel_coords(struct["objects"], where)
    if coords is None:
        return Item(picture, replace(scene, view=view), where)
    width, height = size_of(picture, where)
    fractions = coords[:, :2] / (width, height)
    if np.abs(fractions - 0.5).max() > 0.55:  # beyond what rounding does
        raise InputError(
            f"{where}: pixel_coords lie outside the picture, which has {width} x {height} pixels; "
            "they are those of a picture of another size"
        )
    inside = np.clip(fractions, 0, 1).tolist()
    places = tuple(seen_in(view, (u, v), (width, height)) for u, v in inside)
    return Item(picture, Seen(scene.objects, places), where)


def seen_in(view: str, place: tuple[float, float], size: tuple[int, int]) -> tuple[float, float]:
    """A place of a picture, as a fraction of its view; outside [0, 1] if that does not show it."""
    if view != "square":
        return place
    side = min(size)
    u, v = (0.5 + (part - 0.5) * length / side for part, length in zip(place, size, strict=True))
    return u, v


def size_of(picture: Picture, where: str) -> tuple[int, int]:
    """Width and height, from the first bytes of the file."""
    return of_file(picture_size, picture, where)


def read_item(item: Item) -> UInt8[np.ndarray, "height width 3"]:
    return of_file(read_picture, item.picture, item.where)


def of_file(read: Callable, picture: Picture, where: str) -> Any:
    """What `read` gives of a file, or of one inside another, where an error must say which."""
    if isinstance(picture, Path):
        return read(picture)
    with told_at(where):
        return read(picture.read())


def resized(
    picture: UInt8[np.ndarray, "height width 3"], size: tuple[int, int], view: str = "full"
) -> UInt8[np.ndarray, "rows columns 3"]:
    """A picture, or the square in its middle, at another size (width, height)."""
    height, width, _ = picture.shape
    side = min(height, width)
    left, top = ((width - side) / 2, (height - side) / 2) if view == "square" else (0, 0)
    if (width, height) == size and not left and not top:
        return picture
    box = (left, top, width - left, height - top)
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BOX, box))
