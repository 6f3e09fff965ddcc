"""Files that appear whole or not at all, and folders that one process at a time may write to."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
