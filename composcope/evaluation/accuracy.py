"""How good the detector is, on scenes that it was not trained on: accuracy by count, and its error at what is asked.

exact = share of images with as many objects found as there are
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from scipy.optimize import linear_sum_assignment

from composcope.evaluation.detect import Found
from composcope.evaluation.k_max import is_near, is_right
from composcope.evaluation.matching import match
from composcope.evaluation.oracle import MOST, ask, oracle
from composcope.scenes.rules import Rules
from composcope.scenes.scene import Scene

FRESH = 10**9  # seeds from here on are for measuring, never for training
STILL = Rules(camera_jitter=0.0, lamp_jitter=0.0)
Detect = Callable[[UInt8[np.ndarray, "n h w 3"]], list[list[Found]]]


@dataclass(frozen=True)
class Accuracy:
    """By image: `objects`, and if their count is `exact`; by object: how far `apart` from the truth, the `colors`."""

    objects: np.ndarray
    exact: np.ndarray
    apart: np.ndarray
    colors: np.ndarray


def accuracy(scenes: Sequence[Scene], found: Sequence[Sequence[Found]]) -> Accuracy:
    """Compare with the truth, objects paired one to one by distance."""
    apart: list[float] = []
    colors: list[bool] = []
    for scene, seen in zip(scenes, found, strict=True):
        places = np.reshape([(f.x, f.y) for f in seen], (-1, 2))
        distance = np.linalg.norm(np.reshape(scene.places, (-1, 1, 2)) - places, axis=-1)
        rows, columns = linear_sum_assignment(distance)
        apart += distance[rows, columns].tolist()
        colors += [scene.objects[r].color == seen[c].color for r, c in zip(rows, columns, strict=True)]
    objects = np.array([len(scene.objects) for scene in scenes])
    return Accuracy(objects, objects == [len(seen) for seen in found], np.array(apart), np.array(colors))


def errors(detect: Detect, size: int, scenes: int) -> dict[str, dict]:
    """For each way of asking and each K: how many perfect images, half of them of a still camera, are misjudged."""
    found: dict[str, dict] = {}
    for how, most in MOST.items():
        wrong = np.zeros((2, most + 1), int)
        for K in range(most + 1):
            for rules, part in ((Rules(), 0), (STILL, 1)):
                num, seed = (scenes + 1 - part) // 2, FRESH + 1000 * K + 500 * part
                asked = ask(how, K, num, seed)
                images = oracle(size, rules)(asked, range(seed, seed + num))
                outcomes = [match(a, f, 1 / 16) for a, f in zip(asked, detect(images), strict=True)]
                wrong[:, K] += [sum(not is_right(o, False) for o in outcomes), sum(not is_near(o) for o in outcomes)]
        found[how] = {"scenes": scenes, "right": wrong[0].tolist(), "near": wrong[1].tolist()}
    return found
