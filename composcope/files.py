"""Files that appear whole or not at all, and folders that one process at a time may write to."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from composcope.errors import InputError


def file_at(path: str | Path) -> Path:
    """A path for a file, with the folder it goes into."""
    path = Path(path)
    if not path.name or path.is_dir():
        raise InputError(f"{path} is a folder; a file has to be written there")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it becomes `path` in one step, on failure it is removed."""
    path = file_at(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield partial
        with open(partial, "rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Hold `folder` for this process; a second process gets an InputError at once. The lock dies with its holder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{folder} is in use by another process; wait for it or choose another folder") from None
        yield


@contextmanager
def alone(path: str | Path) -> Iterator[None]:
    """Wait until no other process is between reading `path` and writing it."""
    path = file_at(path)
    with open(path.with_name(f".{path.name}.lock"), "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_png(path: str | Path, picture: Any) -> None:
    """A Pillow image or a Matplotlib figure."""
    with whole(path) as partial:
        if hasattr(picture, "savefig"):
            picture.savefig(partial, format="png", dpi=130)
        else:
            picture.save(partial, "PNG")


T = TypeVar("T")
DEEPEST = 200  # levels of nesting that a file of ours may have
LONGEST = 2**28  # bytes of a JSON file that is read whole


def read_json(path: str | Path, kind: type[T] | Any) -> T:
    """A JSON file as an object of this type (a dataclass, dict[str, int], ...), every field checked."""
    path = Path(path)
    if path.stat().st_size > LONGEST:
        raise InputError(f"{path} has {path.stat().st_size} bytes: too long for a file of this kind")
    return parse_json(path.read_bytes(), kind, str(path))


def read_lines(path: str | Path, kind: type[T] | Any) -> list[T]:
    """A file of JSON lines, each an object of this type."""
    found = []
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                found.append(parse_json(line, kind, f"{path}, line {number}"))
    return found


def parse_json(text: bytes | str, kind: type[T] | Any, where: str) -> T:
    """JSON text as an object of this type; an InputError says where and which field is wrong."""
    raw = text.encode() if isinstance(text, str) else text
    if max(raw.count(b"["), raw.count(b"{")) > DEEPEST and deepest(raw) > DEEPEST:
        raise InputError(f"{where}: nested more than {DEEPEST} levels deep")
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
        raise InputError(f"{where}: {error}") from None


def deepest(raw: bytes) -> int:
    """How deep brackets are nested; those in strings count too, which only ever refuses more."""
    depth = most = 0
    for byte in raw:
        if byte in b"[{":
            depth += 1
            most = max(most, depth)
        elif byte in b"]}":
            depth -= 1
    return most
