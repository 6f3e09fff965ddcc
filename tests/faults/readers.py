"""Every reader of the project, a valid file of each kind with the ways to damage it, and what once
broke one."""

import io
import json
import pickle
import struct
import sys
import tarfile
import types
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save

from composcope.adapters.edm2 import import_edm2
from composcope.arrays import read_npz
from composcope.diffusion import checkpoint
from composcope.diffusion.log import step_of
from composcope.evaluation.answers import fitting, read_answers, read_asked
from composcope.features.prompts import read_prompts
from composcope.files import read_json
from composcope.locality.given import read_condition_sets
from composcope.pictures import read_picture
from composcope.results import row
from composcope.results.row import jsonl, read_rows
from composcope.results.samples import read_samples
from composcope.runs.config import Config, configure
from composcope.runs.model import load
from composcope.scenes import Rules, load_clevr, sample, sources
from composcope.scenes.clevr import to_struct
from composcope.scenes.condition import LocationGrid
from composcope.scenes.dataset import Folder
from composcope.scenes.export import parquet
from composcope.study.schedule import Done
from composcope.tensors import read_tensors
from tests.faults.inputs import Reader, damaged_bytes, damaged_json

# Valid files.


def png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(file, "PNG")
    return file.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def tar(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def tar_of_size(size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """An archive whose second file claims so many bytes, fewer than none too."""
    first, second = tarfile.TarInfo("0.json"), tarfile.TarInfo("0.png")
    second.size = size
    second.type = kind
    headers = (entry.tobuf(tarfile.GNU_FORMAT) for entry in (first, second))
    return b"".join(headers) + bytes(1024)


def table(scene: str) -> bytes:
    """A shard of Parquet with one picture."""
    pyarrow = parquet()
    file = io.BytesIO()
    image = {"bytes": png(), "path": "a.png"}
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist([{"image": image, "scene": scene}]), file, compression="none"
    )
    return file.getvalue()


def snapshot() -> bytes:
    """A pickle like EDM2's: one call of a function that is not there, with source text and state."""
    name = "_reconstruct_persistent_obj"
    module = types.ModuleType("torch_utils.persistence")

    def reconstruct(meta: dict) -> None:
        raise AssertionError

    class Network:
        def __reduce__(self) -> tuple:
            state = {"_parameters": {"gain": torch.ones(3)}, "_buffers": {}, "_modules": {}}
            state |= {"_init_args": (8, 3), "_init_kwargs": {"model_channels": 8}}
            meta = {"class_name": "Precond", "module_src": "raise", "state": state}
            return reconstruct, (meta,)

    reconstruct.__module__ = module.__name__
    reconstruct.__qualname__ = name
    setattr(module, name, reconstruct)
    sys.modules["torch_utils"] = types.ModuleType("torch_utils")
    sys.modules[module.__name__] = module
    try:
        return pickle.dumps({"ema": Network()})
    finally:
        del sys.modules[module.__name__], sys.modules["torch_utils"]


def tensors(header: bytes) -> bytes:
    """Three numbers below any header."""
    return struct.pack("<Q", len(header)) + header + struct.pack("<3f", 1, 1, 1)


def chunk(kind: bytes, content: bytes) -> bytes:
    """Of a PNG file, with the check sum that it should have."""
    crc = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + crc


def picture(size: bytes) -> bytes:
    """A PNG file whose first chunk is this one, and the others those of a valid one."""
    valid = png()
    return valid[:8] + chunk(b"IHDR", size) + valid[33:]


# What reads them.


def pictures_of(path: Path) -> Any:
    """The folder of this file as training data."""
    (path.parent / "images").mkdir(exist_ok=True)
    for place in (path.parent, path.parent / "images"):
        (place / "a.png").write_bytes(png())
    return Folder(path.parent, 8, LocationGrid(8)).batch(0, 2)


def words_of(path: Path) -> Any:
    (path.parent / "a.png").write_bytes(png())
    return sources.vocabulary_of(path.parent)


def asked_of(path: Path) -> Any:
    return fitting(read_asked(path), str(path))


def from_json(name: str, document: Any, read: Callable[[Path], Any]) -> Reader:
    return Reader(name, json.dumps(document).encode(), read, damaged_json(document))


def from_bytes(name: str, valid: bytes, read: Callable[[Path], Any]) -> Reader:
    return Reader(name, valid, read, damaged_bytes(valid))


def around_json(
    name: str, document: Any, around: Callable[[bytes], bytes], read: Callable[[Path], Any]
) -> Reader:
    """JSON in a file of another kind: it is damaged, or the file."""
    valid = around(json.dumps(document).encode())
    damaged = st.one_of(damaged_json(document).map(around), damaged_bytes(valid))
    return Reader(name, valid, read, damaged)


def readers(run: Path) -> list[Reader]:
    """`run` is a finished run of smoke size."""
    config = json.loads((run / "config.json").read_text())
    weights = (run / "model.safetensors").read_bytes()

    def run_with(path: Path) -> Any:
        """The run whose folder this file is in; what is not there is the finished run's."""
        for name in ("config.json", "model.safetensors"):
            if not (path.parent / name).exists():
                (path.parent / name).write_bytes((run / name).read_bytes())
        return load(path.parent)

    def latest(path: Path) -> Any:
        path.with_suffix(".safetensors").write_bytes(weights)
        return checkpoint.latest(path.parent)

    return [
        from_json("a/config.json", config, Config.load),
        from_json("b/config.json", config, run_with),
        from_json("c/000000003.json", {"step": 3, "sha256": "0"}, latest),
        from_bytes("d/model.safetensors", weights, run_with),
        *of_pictures(),
        *of_measurements(),
        *of_tensors(),
    ]


def of_pictures() -> list[Reader]:
    """Pictures, scenes, and all that tells what pictures show."""
    scene = to_struct(sample(0, 0, Rules(objects=(2, 2))), 0, (8, 8))
    scene["image_filename"] = "a.png"
    entry = {"file_name": "a.png", "places": [[0.25, 0.5]]}
    lines = b'file_name,words\na.png,"cat, red"\n'
    size = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)

    def shard(content: bytes) -> bytes:
        return tar({"0.png": png(), "0.json": content})

    def row_group(content: bytes) -> bytes:
        return table(content.decode(errors="replace"))

    return [
        from_bytes("a.png", png(), read_picture),
        Reader("b.png", picture(size), read_picture, damaged_bytes(size).map(picture)),
        from_json("scenes.json", {"scenes": [scene]}, load_clevr),
        from_json("e/CLEVR_scenes.json", {"scenes": [scene]}, pictures_of),
        from_json("f/metadata.jsonl", entry, pictures_of),
        from_bytes("g/metadata.csv", lines, words_of),
        around_json("h/scenes.tar", scene, shard, pictures_of),
        around_json("i/scenes.parquet", scene, row_group, pictures_of),
        from_json("asked.json", {"a.png": [[0.1, 0.2]], "b.png": []}, asked_of),
    ]


def of_measurements() -> list[Reader]:
    """Rows, markers, logs, prompts, conditions, and arrays with what is known of them."""
    measured = row("length/exact", 0.5, run="exp1", K=3, pixel=(1, 2))
    done = asdict(Done(1.0, ("train",)))
    line = {"step": 5, "images": 80, "loss": 0.5}
    concepts = [{"name": name, "category": "", "prompt": name, "word": name} for name in "ab"]
    prompts = {"concepts": concepts, "locality": "a b", "places": [[0.1, 0.2], [0.3, 0.4]]}
    prompts["composites"] = [{"name": "ab", "prompt": "a b", "parts": ["a", "b"]}]
    images = np.zeros((1, 8, 8, 3), np.uint8)
    thing = {"x": 0.1, "y": 0.2, "color": "red", "shape": "cube", "size": "small", "confidence": 1}
    answered = {"asked": [[[0.1, 0.2]]], "found": [[thing]]}
    shown = {"asked": [["red"]], "met": [[True]], "found": [[[0.1, 0.2]]], "walked": ["red"]}
    about = np.array(json.dumps({"run": "exp1"}))

    def answers(text: bytes) -> bytes:
        record = np.array(text.decode(errors="replace"))
        return npz(images=images, record=record, made_from=about)

    def samples(text: bytes) -> bytes:
        record = np.array(text.decode(errors="replace"))
        return npz(images=images, frames=images, sigmas=np.ones(1), record=record, made_from=about)

    return [
        from_json("rows.jsonl", json.loads(jsonl([measured])), read_rows),
        from_json("done.json", done, lambda path: read_json(path, Done)),
        from_json("log.jsonl", line, lambda path: step_of(path.read_bytes() + b"\n")),
        from_json("prompts.json", prompts, read_prompts),
        from_json("sets.json", [["red"], [[0.1, 0.2]]], lambda p: read_condition_sets(p, 2, 2)),
        from_bytes("a.npz", npz(images=images), read_npz),
        around_json("answers.npz", answered, answers, read_answers),
        around_json("samples.npz", shown, samples, read_samples),
    ]


def of_tensors() -> list[Reader]:
    header = {"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}
    return [
        from_bytes("a.safetensors", save({"a": torch.ones(3)}), read_tensors),
        around_json("b.safetensors", header, tensors, read_tensors),
        from_bytes("snapshot.pkl", snapshot(), import_edm2),
    ]


# What once broke.


class Payload:
    """A pickle that makes the canary when it is opened without restraint."""

    def __init__(self, canary: Path):
        self.canary = str(canary)

    def __reduce__(self) -> tuple:
        return Path.touch, (Path(self.canary),)


def corpus(folder: Path) -> dict[str, list[bytes]]:
    """By the name of the file."""
    canary = folder / "canary"
    deep = b"[" * 100_000 + b"]" * 100_000
    long = b'{"step": ' + b"9" * 400 + b"}"
    blocks = json.loads(configure("exp1", "smoke").json())
    blocks["architecture"]["blocks"] = 10**7
    wide = json.loads(configure("exp1", "smoke").json())
    wide["architecture"]["width"] = 10**9
    claims = io.BytesIO()
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (4_000_000_000,)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(claims, "w") as archive:
        archive.writestr("images.npy", header.getvalue())
    objects = npz(images=np.array([Payload(canary)], dtype=object))
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"
    run = f"({canary}) (w) file closefile showpage\n".encode()
    bomb = png()[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", 10**5, 10**5, 8, 2, 0, 0, 0))
    kinds = (tarfile.REGTYPE, tarfile.GNUTYPE_SPARSE)
    sizes = (-1, -512, -(10**6), 2**62)
    return {
        "h/scenes.tar": [tar_of_size(size, kind) for size in sizes for kind in kinds],
        "a/config.json": [deep, long, json.dumps(blocks).encode(), json.dumps(wide).encode()],
        "b/config.json": [json.dumps(blocks).encode(), json.dumps(wide).encode()],
        "rows.jsonl": [deep, long, b'{"what": 3}', b'{"what": "a", "K": "3"}', b"\xff\xfe"],
        "scenes.json": [deep, long, b"3", b'{"scenes": 3}'],
        "done.json": [deep, b'{"minutes": "3", "command": []}', b"[]"],
        "c/000000003.json": [deep, b'{"step": -3, "sha256": 4}'],
        "log.jsonl": [deep, long, b"[]", b'{"step": "x"}', b'{"step": null}'],
        "a.png": [postscript + run, bomb, b"GIF89a", b"%PDF-1.4"],
        "a.npz": [claims.getvalue(), objects, pickle.dumps(Payload(canary))],
        "a.safetensors": [pickle.dumps(Payload(canary)), struct.pack("<Q", 2**63), b"\0" * 8],
        "d/model.safetensors": [pickle.dumps(Payload(canary))],
        "snapshot.pkl": [pickle.dumps(Payload(canary)), pickle.dumps({"ema": Payload(canary)})],
    }
