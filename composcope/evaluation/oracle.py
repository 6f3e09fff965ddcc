"""What is asked of a drawer, and the drawer that renders exactly that: whatever is wrong there is the detector's error.

drawer(condition_sets, seeds) -> images,   image i a function of its condition set and its seed alone
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import UInt8

from composcope.diffusion.denoiser import ConditionSet
from composcope.errors import InputError
from composcope.scenes.condition import PAPER_LOCATIONS
from composcope.scenes.render import render
from composcope.scenes.rules import Rules, sample
from composcope.scenes.scene import COLORS, Scene

Drawer = Callable[[Sequence[ConditionSet], Sequence[int]], UInt8[np.ndarray, "n h w 3"]]
UNSEEN = 10**9  # beyond the seeds of trainings: their first objects stand where those of the same scene of K = 1 do
MOST = {"paper": len(PAPER_LOCATIONS), "random": 12, "colors": len(COLORS)}  # ways of asking, and the largest K of each


def ask(how: str, K: int, num: int, seed: int = 0) -> list[ConditionSet]:
    """Condition sets of K conditions: the paper's first K locations, those of random scenes, or K random colours."""
    if how not in MOST or not 0 <= K <= MOST[how]:
        ways = ", ".join(f"{way} (up to {most})" for way, most in MOST.items())
        raise InputError(f"cannot ask for {K} conditions in the way {how!r}; the ways are {ways}")
    if how == "paper":
        return [PAPER_LOCATIONS[:K]] * num
    if how == "random":
        small = Rules(objects=(K, K), sizes=("small",))  # of mixed sizes, twelve objects hardly ever meet the rules
        return [sample(UNSEEN + seed, index, small).places for index in range(num)]
    rng = np.random.default_rng([seed, K])
    return [tuple(rng.permutation(list(COLORS))[:K].tolist()) for _ in range(num)]


def scene_of(conditions: ConditionSet, seed: int, rules: Rules) -> Scene:
    """A scene that has what is asked, one object a condition, and nothing else; `rules` say all but the number."""
    rules = replace(rules, objects=(len(conditions), len(conditions)))
    if len(conditions) and isinstance(conditions[0], str):
        scene = sample(seed, 0, rules)
        colored = (replace(o, color=color) for o, color in zip(scene.objects, conditions, strict=True))
        return replace(scene, objects=tuple(colored))
    return sample(seed, 0, rules, places=conditions)


def oracle(size: int, rules: Rules | None = None) -> Drawer:
    """The perfect drawer."""
    rules = rules or Rules()

    def draw(condition_sets: Sequence[ConditionSet], seeds: Sequence[int]) -> UInt8[np.ndarray, "n h w 3"]:
        pairs = zip(condition_sets, seeds, strict=True)
        return render([scene_of(conditions, seed, rules) for conditions, seed in pairs], size=size)

    return draw
