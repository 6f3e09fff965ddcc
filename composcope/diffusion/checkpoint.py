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
    """Everything that changes during training: weights, Adam's moments, averages."""

    def __init__(self, model: nn.Module, lr: float, sigma_rels: Sequence[float]):
        self.weights = dict(model.named_parameters())
        self.adam = torch.optim.Adam(self.weights.values(), lr=lr, betas=(0.9, 0.99), fused=True)
        self.averages = {s: PowerEMA(self.weights, s) for s in sigma_rels}

    def update(self, rate: float) -> None:
        self.adam.param_groups[0]["lr"] = rate
        self.adam.step()
        self.adam.zero_grad()

    def average(self, step: int) -> None:
        for ema in self.averages.values():
            ema.update(self.weights, step)

    def averaged(self) -> dict[str, Tensor]:
        return {f"{s}/{name}": w for s, ema in self.averages.items() for name, w in ema.average.items()}

    def tensors(self) -> dict[str, Tensor]:
        """All of it by name; Adam's own step count is the loop's."""
        moments = {"m": "exp_avg", "v": "exp_avg_sq"}
        kept = {f"weights/{name}": weight for name, weight in self.weights.items()}
        for part, key in moments.items():
            kept |= {f"{part}/{name}": self.adam.state[weight][key] for name, weight in self.weights.items()}
        return kept | {f"ema/{name}": average for name, average in self.averaged().items()}

    @torch.no_grad()
    def restore(self, step: int, kept: Weights) -> None:
        for name, weight in self.weights.items():
            weight.copy_(kept[f"weights/{name}"])
            m, v = (torch.empty_like(weight).copy_(kept[f"{part}/{name}"]) for part in "mv")
            self.adam.state[weight] = {
                "step": torch.tensor(float(step), device=weight.device),
                "exp_avg": m,
                "exp_avg_sq": v,
            }
        for name, average in self.averaged().items():
            average.copy_(kept[f"ema/{name}"])
