"""At what terms two rows are compared: at equal images, network and tolerance, or what differs."""

from dataclasses import replace
from typing import Any

from composcope.results import Row
from composcope.study.table import BY_NAME, STUDENT, network_words

# What should be equal, by its coordinate: in words, and what it is called where it is None.
JUDGED = {
    "images": ("training images", "not known"),
    "tolerance": ("tolerance", "not known"),
    "asked": ("conditions", "not known"),
    "max_K": ("largest K", "not known"),
    "steps": ("sampler steps", "not known"),
    "n": ("samples", "not known"),
    "setting": ("setting", "the usual one"),
    "detector": ("detector", "not known"),
}


def differences(above: Row, below: Row) -> list[str]:
    """In words: all that should be equal between two rows that are compared, and is not."""
    told = []
    for name, (words, none) in JUDGED.items():
        first, second = getattr(above, name), getattr(below, name)
        if first != second:
            told.append(f"{words} {number_words(first, none)} against {number_words(second, none)}")
    return told


def unequal(above: Row, below: Row, preset: str) -> list[str]:
    """The same for two runs of the study, of whose trainings more is known."""
    if STUDENT in (above.run, below.run):
        taught = [replace(row, images=None) for row in (above, below)]
        return ["the student learned from its teacher, not from images", *differences(*taught)]
    told = differences(above, below)
    if above.images == below.images and cooled(above, preset) != cooled(below, preset):
        told.append("the learning rate of only one falls to zero")
    return told


def cooled(row: Row, preset: str) -> bool:
    """Whether the learning rate of its training had fallen to zero."""
    if row.run not in BY_NAME or row.snapshot != "final":
        return False
    return BY_NAME[row.run].config(preset).recipe.cool > 0


def number_words(value: Any, none: str) -> str:
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
    return value or none


def terms(above: Row, below: Row, preset: str) -> str:
    """Whether the comparison is at equal images, network and tolerance, or what differs."""
    told = unequal(above, below, preset)
    first, second = (network_words(row.run, preset) for row in (above, below))
    both = zip(("on", "of", "with"), first or (), second or (), strict=False)
    unlike = [f"network {of} {one} against {other}" for of, one, other in both if one != other]
    told += unlike[:1]  # networks that see other things are also built otherwise
    if told:
        return f"not equal: {'; '.join(told)}"
    equal = ["network"] if first or above.images is not None else ["scenes, without training"]
    equal += [f"training images ({above.images:,})"] if above.images is not None else []
    equal += [f"tolerance ({above.tolerance:g})"] if above.tolerance is not None else []
    return f"at equal {', '.join(equal)}"
