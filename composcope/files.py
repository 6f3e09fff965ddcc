"""Files that appear whole or not at all, folders for one process at a time, JSON of known types.

What is refused leaves nothing behind: folders and locks that were made for it go again."""

import codecs
import dataclasses
import fcntl
import os
import re
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar, get_type_hints

import msgspec

from composcope.errors import InputError

SHIPPED = Path(__file__).parent / "models"  # what comes with the package
T = TypeVar("T")

# Writing.


@contextmanager
def folder_for(path: Path) -> Iterator[None]:
    """The folder `path`, made if need be; made for work that fails it goes again, if empty."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for folder in made:  # the innermost first
                folder.rmdir()
        raise


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """A full disk does not say which file it had no room for: its error gets this name."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def check_file(path: Path, suffix: str = "") -> None:
    """An InputError, before the work is done, where a folder stands in place of a file, or its name
    promises another kind of file than is written."""
    if not path.name or path.is_dir():
        raise InputError(f"{path} is a folder; a file has to be written there")
    if suffix and path.suffix.lower() != suffix:
        raise InputError(f"{path}: call it {path.with_suffix(suffix)}, which is what is written")


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`; on success it becomes `path` in one step, else it goes."""
    path = Path(path)
    check_file(path)
    partial = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.part")
    with folder_for(path.parent), naming(path):
        sweep(path.parent)
        try:
            yield partial
            with open(partial, "rb") as written:
                os.fsync(written.fileno())
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


PARTIAL = re.compile(r"\..+\.(?P<host>[^.]+)\.(?P<process>\d+)\.part")


@cache
def sweep(folder: Path) -> None:
    """Remove what killed processes of this machine were writing here; once a process and folder."""
    for path in folder.glob(".*.part"):
        found = PARTIAL.fullmatch(path.name)
        if found and found["host"] == socket.gethostname() and not lives(int(found["process"])):
            path.unlink(missing_ok=True)


def is_partial(path: Path) -> bool:
    """Whether this is a file that its writer did not finish."""
    return PARTIAL.fullmatch(path.name) is not None


def clear(folder: Path) -> None:
    """Remove all that writers of any machine left half done below a folder that is ours alone."""
    for path in folder.rglob(".*.part"):
        if is_partial(path):
            path.unlink(missing_ok=True)


def lives(process: int) -> bool:
    try:
        with suppress(PermissionError):
            os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def write_text(path: str | Path, text: str) -> None:
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_png(path: str | Path, picture: Any) -> None:
    """A Pillow image or a Matplotlib figure."""
    with whole(path) as partial:
        if hasattr(picture, "savefig"):
            picture.savefig(partial, format="png", dpi=130)
        else:
            picture.save(partial, "PNG")


def write_pngs(folder: Path, pictures: Mapping[str, Any]) -> None:
    """Pictures by their names, in one folder."""
    for name, picture in pictures.items():
        write_png(folder / f"{name}.png", picture)


# Locks.


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Hold `folder` alone, at most while this process lives; a second gets an InputError."""
    folder = Path(folder)
    with folder_for(folder), held(folder / ".lock", wait=False) as file:
        if file is None:
            advice = "wait for it or choose another folder"
            raise InputError(f"{folder} is in use by another process; {advice}")
        yield


@contextmanager
def alone(path: str | Path) -> Iterator[None]:
    """Wait until no other process is between reading `path` and writing it."""
    path = Path(path)
    with folder_for(path.parent), held(path.with_name(f".{path.name}.lock"), wait=True):
        yield


@contextmanager
def held(path: Path, wait: bool) -> Iterator[IO | None]:
    """The lock file `path`, there only while it is held; None if another has it, without `wait`."""
    while True:
        file = open(path, "a")  # noqa: SIM115 (closed below)
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            yield None
            return
        if is_at(file, path):
            break
        file.close()  # its holder removed it while we waited: the lock is another file now
    try:
        yield file
    finally:
        path.unlink(missing_ok=True)
        file.close()


def is_at(file: IO, path: Path) -> bool:
    """Whether the open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


# Reading.

LONGEST = 2**28  # bytes of a JSON file that is read whole
NUMBER = re.compile(rb"[:,\[]\s*-?(\d{20,})")  # more digits than 64 bits have


def content(path: str | Path) -> bytes:
    """The bytes of a file, if it is a file and not longer than this."""
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise InputError(f"{path} is not a file")
    if about.st_size > LONGEST:
        raise InputError(f"{path} has {about.st_size} bytes: too long for a file of this kind")
    return Path(path).read_bytes()


def read_json(path: str | Path, kind: type[T] | Any) -> T:
    """A JSON file as an object of this type (a dataclass, dict, ...), every field checked.

    Some editors put a byte order mark at the beginning."""
    return parse_json(content(path).removeprefix(codecs.BOM_UTF8), kind, str(path))


def read_lines(path: str | Path, kind: type[T] | Any) -> list[T]:
    """A file of JSON lines, each an object of this type."""
    lines = content(path).removeprefix(codecs.BOM_UTF8).split(b"\n")
    return [
        parse_json(line, kind, f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def parse_json(text: bytes | str, kind: type[T] | Any, where: str) -> T:
    """JSON text as an object of this type; an InputError says where and which field is wrong."""
    try:
        raw = text.encode() if isinstance(text, str) else text
        if found := NUMBER.search(raw):
            raise InputError(f"an integer of {len(found[1])} digits")
        decoded = msgspec.json.decode(raw)
        if unknown := unknown_field(decoded, kind):
            raise InputError(f"there is no field {unknown!r}")
        return msgspec.convert(decoded, kind, str_keys=True)
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
        raise InputError(f"{where}: {error}") from None


def unknown_field(decoded: Any, kind: Any) -> str | None:
    """A field that a dataclass does not have, or one of the dataclasses in its fields."""
    if not dataclasses.is_dataclass(kind) or not isinstance(decoded, dict):
        return None
    kinds = fields_of(kind)  # type: ignore[arg-type]
    for name, value in decoded.items():
        if name not in kinds:
            return name
        # Most fields are numbers and words: of rows, ten thousand times twenty.
        if isinstance(value, dict) and (inner := unknown_field(value, kinds[name])):
            return f"{name}.{inner}"
    return None


@cache
def fields_of(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
