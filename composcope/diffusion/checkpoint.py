"""Checkpoints that are whole or are not there: STEP.safetensors, then STEP.json with its SHA-256.

A pair whose checksum does not hold is named and passed over."""

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from composcope.diffusion.ema import PowerEMA, Weights
from composcope.diffusion.optimizer import Name, Optimizer
from composcope.errors import InputError
from composcope.files import read_json, write_text
from composcope.tensors import read_tensors, save_tensors

KEPT = 3
# After so long a checkpoint is overdue: with the step in work, less than five minutes can be lost.
SECONDS = 240.0


@dataclass(frozen=True)
class Note:
    """What stands beside the tensors of a checkpoint."""

    step: int
    sha256: str


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
    write_text(path.with_suffix(".json"), json.dumps(asdict(Note(step, sha256(path)))))
    for old in sorted(folder.glob("*.safetensors"))[:-KEPT]:
        old.with_suffix(".json").unlink(missing_ok=True)
        old.unlink()


def latest(folder: Path) -> tuple[int, dict[str, Tensor]] | None:
    """The newest checkpoint that is sound, as (step, tensors); None when there is none."""
    for file in sorted(folder.glob("*.json"), reverse=True):
        path = file.with_suffix(".safetensors")
        try:
            note: Note = read_json(file, Note)
            if f"{note.step:09d}" == path.stem and note.sha256 == sha256(path):
                return note.step, read_tensors(path)
            reason = "its checksum does not hold"
        except (OSError, InputError) as error:
            reason = str(error)
        advice = "going on from the checkpoint before it"
        print(f"composcope: {path} is damaged ({reason}); {advice}", file=sys.stderr)
    return None


class State:
    """Everything that changes during training: weights, the optimizer's moments, averages."""

    def __init__(
        self, model: nn.Module, optimizer: Name, sigma_rels: Sequence[float], muon_rate: float = 1.0
    ):
        self.weights = dict(model.named_parameters())
        self.optimizer = Optimizer(self.weights, optimizer, muon_rate)
        self.averages = {s: PowerEMA(self.weights, s) for s in sigma_rels}

    def update(self, rate: float) -> None:
        self.optimizer.step(rate)

    def average(self, step: int) -> None:
        for ema in self.averages.values():
            ema.update(self.weights, step)

    def averaged(self) -> dict[str, Tensor]:
        pairs = self.averages.items()
        return {f"{s}/{name}": w for s, ema in pairs for name, w in ema.average.items()}

    def tensors(self) -> dict[str, Tensor]:
        """All of it by name."""
        return self.own() | self.optimizer.tensors()

    def own(self) -> dict[str, Tensor]:
        """All but the optimizer's."""
        weights = {f"weights/{name}": weight for name, weight in self.weights.items()}
        return weights | {f"ema/{name}": average for name, average in self.averaged().items()}

    @torch.no_grad()
    def restore(self, step: int, kept: Weights) -> None:
        """An InputError if the tensors are not those of such a state."""
        own = self.own()
        likes = own | {name: self.weights[name[2:]] for name in self.optimizer.names()}
        for name, like in likes.items():
            if name not in kept or kept[name].shape != like.shape:
                raise InputError(
                    f"the checkpoint of step {step} is not of this run ({name}); remove it"
                )
        for name, tensor in own.items():
            tensor.copy_(kept[name])
        self.optimizer.restore(step, kept)
