"""Arrays on disk: .npz without pickles; what a file claims is checked before it is believed."""

import math
import os
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from composcope.errors import InputError

RATIO = 1100  # deflate packs a run of zeros 1,032 to 1: who claims more lies


def read_npz(path: str | Path, *names: str) -> dict[str, np.ndarray]:
    """The arrays of these names, or all there are."""
    if not Path(path).is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            if missing := [name for name in names if name not in entries]:
                raise InputError(f"{path} holds no `{missing[0]}`")
            chosen = {name: entries[name] for name in names or entries}
            check_sizes(archive, chosen, Path(path).stat().st_size)
            return {name: array(archive, entry) for name, entry in chosen.items()}
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    except Exception as error:  # damaged bytes can make an unpacker raise anything
        raise InputError(f"{path} is not a whole .npz file ({error})") from None


def check_sizes(archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], size: int) -> None:
    """An InputError for arrays longer than their file can hold, or than half of the memory."""
    claimed = sum(header(archive, entry) for entry in entries.values())
    if claimed > RATIO * size:
        raise InputError(f"{claimed} bytes are claimed, more than a file of {size} can hold")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if claimed > memory // 2:
        claim = f"{claimed >> 30} GiB are claimed"
        raise InputError(f"{claim}, more than half of this machine's memory")


def header(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    """The bytes that an array claims to have."""
    with archive.open(entry) as file:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
    if dtype.hasobject:
        raise InputError(f"{entry.filename} holds pickled objects, which are not read")
    return math.prod(shape) * dtype.itemsize


def array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(entry) as file:
        return npy.read_array(file, allow_pickle=False)
