"""Arrays that are kept beside rows: .npz files that say what they were made from, and are not taken
for another's."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from composcope.arrays import read_npz
from composcope.errors import InputError
from composcope.files import parse_json, whole

MADE_FROM = "made_from"


def write_arrays(
    path: str | Path, made_from: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """`made_from` is anything JSON can say: the weights, the seeds, what was asked."""
    words = np.array(json.dumps(made_from, sort_keys=True))
    with whole(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, **{MADE_FROM: words, **arrays})  # type: ignore[arg-type]


def read_arrays(
    path: str | Path, made_from: Mapping[str, Any] | None = None
) -> dict[str, np.ndarray]:
    """The arrays of a file; an InputError if they were not made from what `made_from` says."""
    origin, arrays = read_origin(path)
    if made_from is not None:
        check_origin(path, origin, json.loads(json.dumps(made_from)))
    return arrays


def read_origin(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the arrays of a file were made from, and the arrays."""
    try:
        arrays = read_npz(path)
        origin: dict = parse_json(str(arrays.pop(MADE_FROM)), dict, str(path))
    except (InputError, KeyError) as error:
        words = f"{path} does not hold kept arrays ({error}); remove it to measure again"
        raise InputError(words) from None
    return origin, arrays


def check_origin(path: str | Path, origin: Mapping[str, Any], made_from: Mapping[str, Any]) -> None:
    for name in sorted({*origin, *made_from}):
        if origin.get(name) != made_from.get(name):
            raise InputError(
                f"{path} was made with {name} = {origin.get(name)}, not {made_from.get(name)}; "
                "keep this measurement in another folder, or remove the file"
            )
