"""Images a second of `render` against object count and size: `python -m bench.render`.

Every cell is one call on a batch, the median of three, after compilation; Blender's generator makes
0.02 images/s."""

import subprocess
import sys
import time

import numpy as np

from composcope.scenes.render import render, visible_pixels
from composcope.scenes.scene import COLORS, MATERIALS, SHAPES, SIZES, Object, Scene

BLENDER = 0.02  # images a second of the official generator on two cores
FLOORS = {(128, "1-3"): 400, (32, "1-3"): 4000}
SEED = 0


def scenes(count: int, low: int, high: int) -> list[Scene]:
    """Scenes of `low` to `high` objects anywhere on the ground (they may overlap, which costs the
    same)."""
    draw = np.random.default_rng(SEED)

    def thing() -> Object:
        kind = (str(draw.choice(list(names))) for names in (SHAPES, SIZES, MATERIALS, COLORS))
        return Object(*kind, *draw.uniform(-3, 3, 2), draw.uniform(0, 360))

    return [
        Scene(tuple(thing() for _ in range(draw.integers(low, high + 1)))) for _ in range(count)
    ]


def rate(batch: list[Scene], size: int | tuple[int, int]) -> float:
    """Images a second: the median of three calls."""
    render(batch[:4], size)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        render(batch, size)
        seconds.append(time.perf_counter() - start)
    return len(batch) / float(np.median(seconds))


FRESH = """
import time
start = time.perf_counter()
from composcope.scenes import Rules, render
from composcope.scenes.rules import draw
for first in range(0, 40_000, 2000):
    some = draw(0, first, 2000, Rules())
    render(some[: 1 if first == 0 else 2000], 32)
    if first == 0:
        print(f"{time.perf_counter() - start:.1f} s")
    if first in (4000, 38_000):
        # not getrusage, which counts what the parent held
        peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
        print(f"{int(peak.split()[1]) >> 10} MB")
"""


def fresh_process() -> list[tuple[str, str, str]]:
    """How soon another process renders, its machine code being kept on disk; and what a stream of
    images costs it."""
    soon, early, late = subprocess.run(
        [sys.executable, "-c", FRESH], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [
        ("first image of another process", f"after {soon}", "within 3 s"),
        ("memory after 6,000 and 40,000 images of 32x32", f"{early}, {late}", "flat, under 500 MB"),
    ]


def rows() -> list[tuple[str, str, str]]:
    """(what, measured, floor or remark) for the table of `make bench`."""
    out = []
    cases = [("1-3", 1, 3)] + [(str(n), n, n) for n in range(1, 11)]
    for name, low, high in cases:
        for size in (32, 64, 128, (320, 240)):
            side = size if isinstance(size, int) else size[0]
            measured = rate(scenes(max(16, 200_000 // side**2 * 2), low, high), size)
            floor = f"floor {FLOORS[side, name]}; " if (side, name) in FLOORS else ""
            shape = f"{side}x{side if isinstance(size, int) else size[1]}"
            remark = f"{floor}{measured / BLENDER:,.0f} times Blender's {BLENDER}"
            out.append((f"render {shape}, {name} objects", f"{measured:,.0f} images/s", remark))
    batch = scenes(200, 3, 3)
    visible_pixels(batch[:1])
    start = time.perf_counter()
    visible_pixels(batch)
    took = (time.perf_counter() - start) / len(batch) * 1e3
    visible = ("visible pixels, 3 objects", f"{took:.2f} ms a scene", "one core")
    return [*out, *fresh_process(), visible]


if __name__ == "__main__":
    for row in rows():
        print("  ".join(f"{cell:<32}" for cell in row))
