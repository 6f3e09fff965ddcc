"""Claim (Figure 12): where every image has one subject in its middle, scores look far at high
noise, unlike on CLEVR.

    python -m composcope.experiments.centred_subject --preset laptop     one large object
    python -m composcope.experiments.centred_subject --data cifar10.npz  any images: .npz or folder

The U-Net of the preset is trained on them with nothing asked, and its pixel gradients are measured
on noised images."""

from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from composcope.experiments import command
from composcope.files import write_png
from composcope.locality.measure import MAPS, locality
from composcope.report.locality import heatmaps
from composcope.results import Row, add_rows, where
from composcope.results.arrays import read_arrays, write_arrays
from composcope.runs import load
from composcope.runs.config import configure
from composcope.runs.data import images_of
from composcope.runs.training import start
from composcope.scenes.render import render
from composcope.scenes.rules import Rules, sample

RULES = Rules(objects=(1, 1), sizes=("large",), spread=0.3, camera_jitter=0.0, lamp_jitter=0.0)


def centred(count: int, side: int) -> UInt8[np.ndarray, "n side side 3"]:
    """Large objects, seen close: 64x64 pixels out of 320x240, of which the object fills half."""
    pictures = render([sample(0, i, RULES) for i in range(count)], (320, 240))
    middle = pictures[:, 68:132, 125:189]
    small = [Image.fromarray(one).resize((side, side), Image.Resampling.BOX) for one in middle]
    return np.stack([np.asarray(picture) for picture in small])


def main(
    preset: str = "laptop",
    out: Path = Path("study"),
    data: Path | None = None,
    images: int = 32_000,
    scenes: int = 4_000,
    num: int = 16,
) -> list[Row]:
    """Train, measure, and say how wide gradients are in the middle of the image over noise."""
    place = out / preset
    name = "centred" if data is None else data.stem
    side = configure("images", preset).architecture.resolution
    data = data or place / "centred.npz"
    if name == "centred" and not data.exists():
        write_arrays(data, {"scenes": scenes}, {"images": centred(scenes, side)})
    run = place / "runs" / name
    start(configure("images", preset, {"data": str(data), "images": images}), run)
    model = load(run)
    shown = model.pixels.encode(images_of(model.config)(0, num)[0])
    keep = place / "results" / f"locality-{name}"
    rows = locality(model, num=num, states="noised", images=shown, keep=keep)
    add_rows(keep.with_suffix(".jsonl"), rows)
    write_png(keep / "heatmaps.png", heatmaps(read_arrays(keep / MAPS)))
    for row in where(rows, what="locality/square", pixel=(side // 2, side // 2)):
        print(f"sigma {row.sigma:8.3f}: the middle pixel looks {row.estimate} of {side} pixels far")
    return rows


if __name__ == "__main__":
    command(main)
