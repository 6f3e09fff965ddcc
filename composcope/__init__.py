"""Composcope: a microscope for compositional generalization in conditional diffusion models.

One contract stands in the middle, and every room makes, wraps or measures it:

    denoiser(x, sigma, cond) -> x0

The names below are imported when they are first used, so that `import composcope` is quick."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from composcope.diffusion.sample import draw
    from composcope.evaluation import detect, evaluate
    from composcope.locality import LocalConditions, audit
    from composcope.runs import load
    from composcope.scenes import Rules, render, sample
    from composcope.study.shipped import models, rows

__version__ = "0.1.0"
__all__ = ["LocalConditions", "Rules", "audit", "detect", "draw", "evaluate", "load", "models"]
__all__ += ["render", "rows", "sample"]
ROOMS = {
    "load": "runs",  # a trained model, by name or folder
    "models": "study.shipped",  # which come with the package
    "draw": "diffusion.sample",  # pictures of condition sets
    "evaluate": "evaluation",  # how far a model composes
    "detect": "evaluation",  # the objects in pictures
    "audit": "locality",  # is a denoiser's score local?
    "LocalConditions": "locality",  # a denoiser forced to be
    "rows": "study.shipped",  # what was measured
    "Rules": "scenes",  # what scenes may look like
    "sample": "scenes",  # a scene from a seed
    "render": "scenes",  # scenes as pictures
}


def __getattr__(name: str) -> Any:
    if name not in ROOMS:
        raise AttributeError(f"module 'composcope' has no attribute {name!r}")
    return getattr(import_module(f"composcope.{ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
