"""How good the detector is on scenes it has not seen, and how fast; on renders: `python -m
bench.detector FOLDER`.

FOLDER holds Blender's images/NAME.png and scenes/NAME.json, of which only the number of objects is
used."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from composcope.evaluation.accuracy import FRESH, STILL, Accuracy, accuracy
from composcope.evaluation.detect import RESOLUTIONS, detect
from composcope.scenes.render import render
from composcope.scenes.rules import Rules, sample

SCENES = 1000  # for each size, of 0 to 10 objects; half of them with camera and lamps held still
FLOOR = {32: ">= 85 %", 64: "> 95 %", 128: ">= 98 %"}


def measured(size: int, view: str = "full") -> Accuracy:
    kinds = Rules(objects=(0, 10), view=view), replace(STILL, objects=(0, 10), view=view)
    scenes = [sample(FRESH + 7, i, kinds[i % 2]) for i in range(SCENES)]
    return accuracy(scenes, detect(render(scenes, size=size)))


def percent(right: np.ndarray) -> str:
    half = 1.96 * (right.mean() * (1 - right.mean()) / len(right)) ** 0.5
    return f"{right.mean():.1%} +- {half:.1%}"


def of_size(size: int) -> list[tuple[str, str, str]]:
    found, name = measured(size), f"detector {size}x{size}"
    rows = [(f"{name}: exact count, 0-10 objects", percent(found.exact), FLOOR[size])]
    if size == 32:
        few = percent(found.exact[found.objects <= 6])
        rows.append((f"{name}: exact count, 0-6 objects", few, ">= 93 %"))
    if size == 64:
        square = measured(size, "square").exact
        rows.append((f"{name}: exact count, square view", percent(square), ">= 98.5 %"))
    apart = f"{np.median(found.apart):.2%} of the image"
    rows.append((f"{name}: centres, median distance", apart, "<= 1.5 %"))
    return [*rows, (f"{name}: colour right", percent(found.colors), ">= 97 %" if size > 32 else "")]


def speed(size: int = 32, count: int = 1024) -> float:
    """Images a second, the median of five."""
    images = np.random.default_rng(0).integers(0, 256, (count, size, size, 3), np.uint8)
    detect(images[:64])
    times = []
    for _ in range(5):
        start = time.perf_counter()
        detect(images)
        times.append(time.perf_counter() - start)
    return count / float(np.median(times))


def rows() -> list[tuple[str, str, str]]:
    table = [row for size in RESOLUTIONS for row in of_size(size)]
    threads = torch.get_num_threads()
    what = f"detector 32x32: speed on {threads} threads"
    return [*table, (what, f"{speed():.0f} images/s", ">= 500 on two cores")]


def on_renders(folder: Path) -> tuple[int, int]:
    """(exact counts, images) on Blender's renders, squeezed to 128x128."""
    exact = []
    for path in sorted(folder.glob("images/*.png")):
        image = Image.open(path).convert("RGB").resize((128, 128), Image.Resampling.BOX)
        truth = json.loads((folder / "scenes" / f"{path.stem}.json").read_text())["objects"]
        exact.append(len(detect(np.array(image)[None])[0]) == len(truth))
    return sum(exact), len(exact)


if __name__ == "__main__":
    print("exact count in {} of {} renders".format(*on_renders(Path(sys.argv[1]))))
