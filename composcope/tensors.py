"""Tensors on disk: safetensors, which run no code; a failure is one sentence with the file. And
rows of tensors that are equal, so that what is computed of them is computed once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from composcope.errors import InputError
from composcope.files import whole


def save_tensors(
    path: Path, tensors: Mapping[str, Tensor], about: dict[str, str] | None = None
) -> None:
    """All tensors by name, and words about them."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with whole(path) as partial:
        # Not by save_file: killed, it leaves a file whose name does not say whose it was.
        partial.write_bytes(save(plain, about))


def read_tensors(path: str | Path, finite: bool = False) -> dict[str, Tensor]:
    """All tensors by name; where they have to be `finite`, others are refused."""
    with file_errors(f"{path} cannot be read"):
        tensors = load_file(path)
    for name, tensor in tensors.items():
        if finite and tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{path}: the numbers of {name} are not finite")
    return tensors


def read_tensor(path: str | Path, name: str) -> Tensor:
    """One tensor of a file; the others are not read."""
    with file_errors(f"{path} does not hold {name}"), safe_open(path, "pt") as file:
        return file.get_tensor(name)


def read_about(path: str | Path) -> dict[str, str]:
    """The words about the tensors of a file."""
    with file_errors(f"{path} cannot be read"), safe_open(path, "pt") as file:
        return file.metadata() or {}


@contextmanager
def file_errors(sentence: str) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{sentence} ({first_line(error)})") from None


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def distinct(*parts: Tensor) -> tuple[Tensor, Tensor]:
    """The rows that differ, in their order: an index of each, and which of them each row is.

    A row is given in `parts`, side by side. What is made of the indices has gradients as ever."""
    rows = torch.cat([part.detach().flatten(1) for part in parts], 1)
    different, which = rows.unique(dim=0, return_inverse=True)
    index = torch.arange(len(rows), device=rows.device)
    first = index.new_full((len(different),), len(rows)).scatter_reduce(0, which, index, "amin")
    order = first.argsort()
    return first[order], order.argsort()[which]
