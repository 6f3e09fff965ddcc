"""What was found in a picture, and in words whether it is what was asked for."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from composcope.evaluation.detect import Found
from composcope.evaluation.matching import match
from composcope.scenes.parts import SumOfParts
from composcope.study.table import TOLERANCE

FIELDS = ("x", "y", "color", "shape", "size", "confidence")  # of what was found


def verdict(conditioner: Any, conditions: Sequence, found: Sequence[Found]) -> dict:
    """What was found, and in words whether it is what was asked for."""
    if not getattr(conditioner, "of_scenes", True):
        # The detector sees the objects of scenes in photos too.
        return {"found": [], "verdict": f"a {conditioner.noun} cannot be counted"}
    things = [{name: json_number(getattr(one, name)) for name in FIELDS} for one in found]
    if not getattr(conditioner, "countable", False):  # nothing, or words
        return {
            "found": things,
            "verdict": f"{len(found)} object{'' if len(found) == 1 else 's'} found",
        }
    unasked = extras(conditioner, conditions, found)
    marked = [{**thing, "extra": one in unasked} for thing, one in zip(things, found, strict=True)]
    met = len(found) - len(unasked)
    words = f"asked {len(conditions)}, {met} there, {len(unasked)} extra"
    counts = {"asked": len(conditions), "there": met, "extra": len(unasked)}
    return {"found": marked, **counts, "verdict": words}


def there(conditioner: SumOfParts, conditions: Sequence, found: Sequence[Found]) -> int:
    """How many of the conditions are met."""
    return match(conditioner, conditions, found, TOLERANCE).found


def extras(conditioner: Any, conditions: Sequence, found: Sequence[Found]) -> list[Found]:
    """The objects that nobody asked for: those without which as many conditions are met, the
    farthest first."""
    met = there(conditioner, conditions, found)
    kept = list(found)
    for thing in sorted(found, key=lambda one: -away(conditioner, conditions, one)):
        fewer = [one for one in kept if one is not thing]
        if there(conditioner, conditions, fewer) == met:
            kept = fewer
    return [one for one in found if one not in kept]


def away(conditioner: Any, conditions: Sequence, thing: Found) -> float:
    """How far an object is from the nearest place that was asked for."""
    if not conditioner.has_places or not conditions:
        return 0.0
    return float(np.abs(np.array(conditions) - (thing.x, thing.y)).max(1).min())


def json_number(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
