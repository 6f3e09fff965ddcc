"""Checkpoints that are whole or are not there: tensors in safetensors, beside them a JSON with their SHA-256.

STEP.safetensors is written first, STEP.json last; a pair whose checksum does not hold is named and passed over.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from composcope.diffusion.ema import PowerEMA, Weights
from composcope.diffusion.optimizer import Name, Optimizer
from composcope.files import whole, write_text

KEPT = 3


def save_tensors(path: Path, tensors: Weights) -> None:
    with whole(path) as partial:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, partial)


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(2**20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def save(folder: Path, step: int, tensors: Weights) -> None:
    """Add the checkpoint of `step`, then drop all but the last few."""
    path = folder / f"{step:09d}.safetensors"
    save_tensors(path, tensors)
    write_text(path.with_suffix(".json"), json.dumps({"step": step, "sha256": sha256(path)}))
    for old in sorted(folder.glob("*.safetensors"))[:-KEPT]:
        old.with_suffix(".json").unlink(missing_ok=True)
        old.unlink()


def latest(folder: Path) -> tuple[int, dict[str, Tensor]] | None:
    """The newest checkpoint that is sound, as (step, tensors); None when there is none."""
    return next(sound(folder), None)


def sound(folder: Path) -> Iterator[tuple[int, dict[str, Tensor]]]:
    for note in sorted(folder.glob("*.json"), reverse=True):
        path = note.with_suffix(".safetensors")
        try:
            said = json.loads(note.read_text(encoding="utf-8"))
            if said["sha256"] == sha256(path):
                yield said["step"], load_file(path)
                continue
            reason = "its checksum does not hold"
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            reason = str(error)
        print(f"composcope: {path} is damaged ({reason}); going on from the checkpoint before it", file=sys.stderr)


class State:
    """Everything that changes during training: weights, the optimizer's moments, averages."""

    def __init__(self, model: nn.Module, optimizer: Name, sigma_rels: Sequence[float]):
        self.weights = dict(model.named_parameters())
        self.optimizer = Optimizer(self.weights, optimizer)
        self.averages = {s: PowerEMA(self.weights, s) for s in sigma_rels}

    def update(self, rate: float) -> None:
        self.optimizer.step(rate)

    def average(self, step: int) -> None:
        for ema in self.averages.values():
            ema.update(self.weights, step)

    def averaged(self) -> dict[str, Tensor]:
        return {f"{s}/{name}": w for s, ema in self.averages.items() for name, w in ema.average.items()}

    def tensors(self) -> dict[str, Tensor]:
        """All of it by name."""
        weights = {f"weights/{name}": weight for name, weight in self.weights.items()}
        averages = {f"ema/{name}": average for name, average in self.averaged().items()}
        return weights | self.optimizer.tensors() | averages

    @torch.no_grad()
    def restore(self, step: int, kept: Weights) -> None:
        for name, weight in self.weights.items():
            weight.copy_(kept[f"weights/{name}"])
        for name, average in self.averaged().items():
            average.copy_(kept[f"ema/{name}"])
        self.optimizer.restore(step, kept)
