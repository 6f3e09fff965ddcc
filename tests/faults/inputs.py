"""Bad files for every reader: valid ones damaged by hypothesis, and a corpus of what once broke.

A reader may take what it is given or refuse it with an InputError (OSError for a file that is not
there). Anything else is a traceback; more than SECONDS is a hang; a canary that exists was run."""

import copy
import io
import json
import pickle
import signal
import struct
import sys
import types
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import save

from composcope.adapters.edm2 import import_edm2
from composcope.arrays import read_npz
from composcope.diffusion import checkpoint
from composcope.diffusion.log import step_of
from composcope.errors import InputError
from composcope.files import read_json
from composcope.pictures import read_picture
from composcope.results import row
from composcope.results.row import jsonl, read_rows
from composcope.runs.config import Config, configure
from composcope.runs.model import load
from composcope.scenes import Rules, load_clevr, sample
from composcope.scenes.clevr import to_struct
from composcope.study.schedule import Done
from composcope.tensors import read_tensors

SECONDS = 300  # far more than anything takes on a busy machine


@dataclass
class Tally:
    """What became of bad inputs."""

    tried: int = 0
    refused: int = 0
    tracebacks: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    executions: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # files of refused commands

    @property
    def faults(self) -> list[str]:
        return self.tracebacks + self.hangs + self.executions + self.left


class Hang(BaseException):
    pass


@contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    def out_of_time(number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Reader:
    """One kind of file: its name in a folder, a valid one, and what reads it."""

    name: str
    valid: bytes
    read: Callable[[Path], Any]
    damaged: st.SearchStrategy[bytes]


def attempt(reader: Reader, content: bytes, folder: Path, tally: Tally) -> None:
    """Read one bad file."""
    path = folder / reader.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    canary = folder / "canary"
    tally.tried += 1
    try:
        with limited():
            reader.read(path)
    except (InputError, OSError) as error:
        tally.refused += 1
        if "\n" in str(error):
            tally.tracebacks.append(f"{reader.name}: more than a sentence: {error!r:.300}")
    except Hang:
        tally.hangs.append(f"{reader.name}: {content[:200]!r}")
    except BaseException as error:
        tally.tracebacks.append(f"{reader.name}: {error!r:.200}: {content[:200]!r}")
    if canary.exists():
        tally.executions.append(f"{reader.name}: {content[:200]!r}")
        canary.unlink()


# Damage.

ODD = (
    *(None, True, -1, 0, 1e308, -0.0, "", "\u202e<script>alert(1)</script>", "../../etc/passwd"),
    *([], {}, [[]], 10**400, 2**63, 10**7, -(10**7), 0.5, "nan", ["red"] * 50, {"a": {"b": []}}),
)


def places(document: Any, at: tuple = ()) -> Iterator[tuple]:
    """The way to every value of a JSON document."""
    yield at
    items = document.items() if isinstance(document, dict) else ()
    items = enumerate(document) if isinstance(document, list) else items
    for key, value in items:
        yield from places(value, (*at, key))


def changed(document: Any, at: tuple, value: Any) -> Any:
    if not at:
        return value
    copied = copy.deepcopy(document)
    inner = copied
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return copied


def without(document: Any, at: tuple) -> Any:
    copied = copy.deepcopy(document)
    inner = copied
    for key in at[:-1]:
        inner = inner[key]
    del inner[at[-1]]
    return copied


def damaged_bytes(valid: bytes) -> st.SearchStrategy[bytes]:
    """Cut, with other bytes in places, or anything at all."""
    cut = st.integers(0, len(valid) - 1).map(lambda end: valid[:end])
    spots = st.lists(st.tuples(st.integers(0, len(valid) - 1), st.integers(0, 255)), min_size=1)

    def put(changes: list[tuple[int, int]]) -> bytes:
        content = bytearray(valid)
        for place, byte in changes:
            content[place] = byte
        return bytes(content)

    return st.one_of(cut, spots.map(put), st.binary(max_size=200))


def damaged_json(document: Any) -> st.SearchStrategy[bytes]:
    """A document with a value replaced, a field missing or one too many; or damaged as text."""
    ways = list(places(document))
    odd = st.one_of(st.sampled_from(ODD), st.recursive(st.integers() | st.text(), st.lists))
    replaced = st.tuples(st.sampled_from(ways), odd).map(lambda p: changed(document, *p))
    shorter = st.sampled_from([way for way in ways if way]).map(lambda at: without(document, at))
    longer = st.text(max_size=5).map(lambda name: {**document, f"x{name}": 1})
    options = [replaced, shorter] + ([longer] if isinstance(document, dict) else [])
    as_text = st.one_of(*options).map(lambda d: json.dumps(d).encode())
    return st.one_of(as_text, damaged_bytes(json.dumps(document).encode()))


# The readers.


def png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(file, "PNG")
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, images=np.zeros((2, 8, 8, 3), np.uint8))
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


def readers(run: Path) -> list[Reader]:
    """Every reader of the project; `run` is a finished run of smoke size."""
    config = json.loads((run / "config.json").read_text())
    weights = (run / "model.safetensors").read_bytes()
    measured = row("length/exact", 0.5, run="exp1", K=3, pixel=(1, 2), place=(0.1, 0.2))
    one_row = json.loads(jsonl([measured]))
    scene = to_struct(sample(0, 0, Rules(objects=(2, 2))), 0, (64, 48))
    done = asdict(Done(1.0, ("train",)))
    line = {"step": 5, "images": 80, "loss": 0.5}

    def run_with(path: Path) -> Any:
        """The run whose folder this file is in; what is not there is the finished run's."""
        for name in ("config.json", "model.safetensors"):
            if not (path.parent / name).exists():
                (path.parent / name).write_bytes((run / name).read_bytes())
        return load(path.parent)

    def latest(path: Path) -> Any:
        path.with_suffix(".safetensors").write_bytes(weights)
        return checkpoint.latest(path.parent)

    def from_json(name: str, document: Any, read: Callable[[Path], Any]) -> Reader:
        return Reader(name, json.dumps(document).encode(), read, damaged_json(document))

    def from_bytes(name: str, valid: bytes, read: Callable[[Path], Any]) -> Reader:
        return Reader(name, valid, read, damaged_bytes(valid))

    return [
        from_json("a/config.json", config, Config.load),
        from_json("b/config.json", config, run_with),
        from_json("rows.jsonl", one_row, read_rows),
        from_json("scenes.json", {"scenes": [scene]}, load_clevr),
        from_json("done.json", done, lambda path: read_json(path, Done)),
        from_json("c/000000003.json", {"step": 3, "sha256": "0"}, latest),
        from_json("log.jsonl", line, lambda path: step_of(path.read_bytes() + b"\n")),
        from_bytes("a.png", png(), read_picture),
        from_bytes("a.npz", npz(), read_npz),
        from_bytes("a.safetensors", save({"a": torch.ones(3)}), read_tensors),
        from_bytes("d/model.safetensors", weights, run_with),
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
    objects = io.BytesIO()
    np.savez(objects, images=np.array([Payload(canary)], dtype=object))
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"
    run = f"({canary}) (w) file closefile showpage\n".encode()
    size = struct.pack(">IIBBBBB", 10**5, 10**5, 8, 2, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + size
    bomb += struct.pack(">I", zlib.crc32(b"IHDR" + size))
    return {
        "a/config.json": [deep, long, json.dumps(blocks).encode(), json.dumps(wide).encode()],
        "b/config.json": [json.dumps(blocks).encode(), json.dumps(wide).encode()],
        "rows.jsonl": [deep, long, b'{"what": 3}', b'{"what": "a", "K": "3"}', b"\xff\xfe"],
        "scenes.json": [deep, long, b"3", b'{"scenes": 3}'],
        "done.json": [deep, b'{"minutes": "3", "command": []}', b"[]"],
        "c/000000003.json": [deep, b'{"step": -3, "sha256": 4}'],
        "log.jsonl": [deep, long, b"[]", b'{"step": "x"}', b'{"step": null}'],
        "a.png": [postscript + run, bomb, b"GIF89a", b"%PDF-1.4"],
        "a.npz": [claims.getvalue(), objects.getvalue(), pickle.dumps(Payload(canary))],
        "a.safetensors": [pickle.dumps(Payload(canary)), struct.pack("<Q", 2**63), b"\0" * 8],
        "d/model.safetensors": [pickle.dumps(Payload(canary))],
        "snapshot.pkl": [pickle.dumps(Payload(canary)), pickle.dumps({"ema": Payload(canary)})],
    }


def campaign(run: Path, folder: Path, examples: int, number: int = 0) -> Tally:
    """The corpus, then `examples` damaged files for each reader."""
    tally = Tally()
    broke = corpus(folder)
    for reader in readers(run):
        for content in broke[reader.name]:
            attempt(reader, content, folder, tally)
        fuzz(reader, folder, tally, examples, number)
    return tally


def fuzz(reader: Reader, folder: Path, tally: Tally, examples: int, number: int) -> None:
    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(reader.damaged)
    def every(content: bytes) -> None:
        attempt(reader, content, folder, tally)

    every()
