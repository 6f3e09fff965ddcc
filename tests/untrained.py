"""Runs that nobody trained: folders of the smoke preset with random weights."""

from pathlib import Path

import torch

from composcope.diffusion.pixels import Pixels
from composcope.runs.config import configure
from composcope.runs.model import Model
from composcope.tensors import save_tensors


def untrained(folder: Path, experiment: str, gain: float = 1.0) -> Path:
    """A run folder; a run begins with gains of 0, others let its conditions through."""
    model = Model(configure(experiment, "smoke"), Pixels(torch.zeros(3, 1, 1), 1.0))
    for name, weight in model.named_parameters():
        if name.endswith("gain"):
            torch.nn.init.constant_(weight, gain)
    model.config.save(folder / "config.json")
    save_tensors(folder / "model.safetensors", model.state_dict())
    return folder
