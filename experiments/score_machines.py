"""Claim (ours, after Kamb & Ganguli): without any training, local and conditional composes; global memorises.

    python -m experiments.score_machines --scenes 10000

Three denoisers made of one set of training scenes of 1-3 objects, judged like every other model.
"""

import torch
import tyro

from composcope.diffusion.pixels import Pixels
from composcope.evaluation.length import length, sampler
from composcope.results import Row
from composcope.scenes.condition import LocationGrid
from composcope.scenes.dataset import Stream
from composcope.scenes.rules import Rules
from composcope.theory.score_machine import score_machine

GRID, SIDE = 8, 32
MACHINES = {"local conditional": (True, 1), "local": (False, 1), "ideal": (True, None)}


def main(scenes: int = 10_000, num: int = 16, most: int = 9, steps: int = 10) -> list[Row]:
    """Mean objects found at the asked places for each K, of every machine."""
    conditioner = LocationGrid(GRID)
    rules = Rules(objects=(1, 3), camera_jitter=0.0, lamp_jitter=0.0)
    data = Stream(rules, SIDE, conditioner, "all", 0).batch(0, scenes)
    pixels = Pixels.measure(data.images, fixed=True)
    rows = []
    for name, (conditional, radius) in MACHINES.items():
        cond = data.cond if conditional else None
        machine = score_machine(pixels.encode(data.images), cond, GRID, radius)
        draw = sampler(machine, conditioner, pixels.decode, (3, SIDE, SIDE), steps)
        with torch.inference_mode():
            judged = length(draw, "paper", range(most + 1), num, 1 / GRID)
        for K, one in judged.items():
            found = torch.tensor([float(outcome.found) for outcome in one.outcomes])
            half = 1.96 * float(found.std()) / num**0.5
            value = float(found.mean())
            rows.append(Row("length/found", name, value, {"K": K, "num": num}, low=value - half, high=value + half))
            print(f"{name:18} K = {K}: {value:.1f} +- {half:.1f} found at asked places")
    return rows


if __name__ == "__main__":
    tyro.cli(main)
