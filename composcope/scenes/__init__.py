"""What is in the picture: scenes from a seed, rendered; what is asked of an image; data sets."""

from importlib import import_module
from typing import TYPE_CHECKING

from composcope.scenes.clevr import load_clevr
from composcope.scenes.render import layers, render, visible_pixels
from composcope.scenes.rules import Rules, sample
from composcope.scenes.scene import COLORS, MATERIALS, SHAPES, SIZES, Object, Scene, project

if TYPE_CHECKING:
    from composcope.scenes.condition import PAPER_LOCATIONS, ColorCounts, LocationGrid, LocationList
    from composcope.scenes.dataset import Batch, Folder, Stream
    from composcope.scenes.labels import LABELS

__all__ = ["COLORS", "LABELS", "MATERIALS", "PAPER_LOCATIONS", "SHAPES", "SIZES", "Batch"]
__all__ += ["ColorCounts", "Folder", "LocationGrid", "LocationList", "Object", "Rules", "Scene"]
__all__ += ["Stream", "layers", "load_clevr", "project", "render", "sample", "visible_pixels"]


def __getattr__(name: str) -> object:
    """What needs torch is imported when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    others = {"Batch": "dataset", "Folder": "dataset", "Stream": "dataset", "LABELS": "labels"}
    return getattr(import_module(f"{__name__}.{others.get(name, 'condition')}"), name)
