"""What may be asked of the server: types with their bounds, checked before anything is computed.

A request is refused with one sentence that begins with the name of the field it is about."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from composcope.errors import InputError

MOST_CONDITIONS = 12  # the paper's test places
MOST_STEPS = 64
WITH_RADIUS = ("local", "guided")  # interventions
MOST_IMAGES = 8
LARGEST = 2**16  # bytes of a request
SEEDS = 2**31 - 1

Share = Annotated[float, Meta(ge=0, le=1)]  # of the image's width or height
Word = Annotated[str, Meta(max_length=255)]  # as long as the name of a run's folder may be
# Not tuple[Share, Share]: msgspec 0.22 reads past the end of memory for that in a union with Word.
Place = Annotated[tuple[Share, ...], Meta(min_length=2, max_length=2)]
Conditions = Annotated[tuple[Place | Word, ...], Meta(max_length=MOST_CONDITIONS)]
Seed = Annotated[int, Meta(ge=0, le=SEEDS)]
Steps = Annotated[int, Meta(ge=2, le=MOST_STEPS)]
Radius = Annotated[float, Meta(ge=0.01, le=1)]


class Picture(Struct, frozen=True, forbid_unknown_fields=True):
    """One picture: who draws it, what is asked of it, and its noise."""

    model: Word
    conditions: Conditions = ()  # places [u, v], or names
    sentence: Annotated[str, Meta(max_length=200)] = (
        ""  # for models of words, in place of conditions
    )
    intervention: Word = "none"
    radius: Radius | None = None  # of local conditions, in image sides
    seed: Seed = 0


class Sample(Picture, frozen=True, forbid_unknown_fields=True):
    """POST /api/sample: a picture, and others drawn beside it in the same steps."""

    steps: Steps = 12
    beside: Annotated[tuple[Picture, ...], Meta(max_length=MOST_IMAGES - 1)] = ()

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return (picture_of(self), *self.beside)


class Look(Picture, frozen=True, forbid_unknown_fields=True):
    """POST /api/look: one pixel (row, column) of a picture at the noise level nearest to sigma."""

    sigma: Annotated[float, Meta(ge=0, le=1000)] = 0.0
    pixel: tuple[Annotated[int, Meta(ge=0, le=4095)], Annotated[int, Meta(ge=0, le=4095)]] = (0, 0)
    steps: Steps = 12


class Described(Struct, frozen=True, kw_only=True):
    """What the page and the checks need to know of a model."""

    name: str
    run: str  # what `load` takes: the name of a shipped model, or the folder that was given
    training: str  # a sentence
    conditioner: str | None = None  # what `load` takes beside it, of a run with one from outside
    size: tuple[int, int]  # of x: rows and columns that can be looked at
    noun: str = "nothing"  # one condition: "location", "colour", "word"
    asks: str = "nothing"  # "places", "names" or "words"
    like: str = ""  # conditions as one would type them
    names: tuple[str, ...] = ()
    most: int = 0  # conditions
    grid: int | None = None  # cells along each side
    view: str | None = None  # of the scene
    interventions: tuple[str, ...] = ("none",)
    trained: int | None = None  # the most objects of a training image
    weights: str | None = None
    paper: int | None = None  # the paper's K_max


T = TypeVar("T", bound=Picture)


def parse(body: bytes, kind: type[T]) -> T:
    """A request of this kind, or an InputError that names the field."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise InputError(message_of(str(error))) from None
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
        raise InputError(f"body: {error}") from None


def message_of(problem: str) -> str:
    """msgspec's "Expected `int` <= 64 - at `$.steps`", with the field first."""
    what, _, where = problem.partition(" - at `$")
    field = where.rstrip("`").lstrip(".")
    return f"{field or 'body'}: {what[0].lower()}{what[1:]}"


def check_picture(picture: Picture, models: Mapping[str, Described], where: str = "") -> None:
    """An InputError if the picture is not one that its model can be asked for."""
    model = models[picture.model]
    if picture.intervention not in model.interventions:
        known = ", ".join(model.interventions)
        raise InputError(f"{where}intervention: {model.name} has only {known}")
    if picture.radius is not None and picture.intervention not in WITH_RADIUS:
        raise InputError(f"{where}radius: only {' and '.join(WITH_RADIUS)} conditions have one")
    if picture.sentence and model.asks != "words":
        raise InputError(f"{where}sentence: {model.name} is not asked in words")
    if picture.conditions and model.asks == "words":
        raise InputError(f"{where}conditions: {model.name} is asked in a sentence")
    if len(picture.conditions) > model.most:
        raise InputError(f"{where}conditions: {model.name} is asked for at most {model.most}")
    if isinstance(picture, Look):
        row, column = picture.pixel
        if row >= model.size[0] or column >= model.size[1]:
            rows, columns = model.size
            raise InputError(f"pixel: {model.name} has {rows} rows and {columns} columns")
    for number, condition in enumerate(picture.conditions):
        wrong = f"{where}conditions[{number}]: "
        if model.asks == "places" and isinstance(condition, str):
            raise InputError(f"{wrong}{model.name} is asked for places, such as [0.65, 0.65]")
        if model.asks == "names" and condition not in model.names:
            raise InputError(f"{wrong}{model.name} is asked for {', '.join(model.names)}")


def picture_of(request: Picture) -> Picture:
    """The picture of a request, without what else it says."""
    return Picture(**{name: getattr(request, name) for name in Picture.__struct_fields__})
