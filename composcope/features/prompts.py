"""What to ask of a text-to-image model: single concepts in categories, composites of them, a prompt
with places in it.

The eight concepts marked * and the composites are the paper's (section G), as is the prompt for
locality. Version 3 has 24 prompts in 4 categories and names three of these; the other sixteen
prompts and the category "places" are ours."""

from dataclasses import dataclass
from pathlib import Path

from composcope.errors import InputError
from composcope.files import read_json


@dataclass(frozen=True)
class Concept:
    """A prompt for one thing; `word` is the one whose token stands for it."""

    name: str
    category: str
    prompt: str
    word: str


@dataclass(frozen=True)
class Composite:
    """A prompt for several concepts, by their names."""

    name: str
    prompt: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Prompts:
    concepts: tuple[Concept, ...]
    composites: tuple[Composite, ...]
    locality: str
    """The prompt whose words are left out one by one."""
    places: tuple[tuple[float, float], ...]
    """Where its gradients are taken, (u, v) in [0, 1]^2; influence over time is shown at the first
    two."""

    def __post_init__(self) -> None:
        names = [concept.name for concept in self.concepts]
        for concept in self.concepts:
            word = concept.word
            if word.lower() not in concept.prompt.lower():
                raise InputError(f"the word {word!r} of {concept.name!r} is not in its prompt")
        for part in (part for composite in self.composites for part in composite.parts):
            if part not in names:
                raise InputError(f"the composites name {part!r}, which is not a concept")
        if len(names) < 2 or len({*names}) < len(names):
            raise InputError("prompts need at least two concepts, each with a name of its own")
        inside = all(0 <= part <= 1 for place in self.places for part in place)
        if len(self.places) < 2 or not inside:
            raise InputError("prompts need at least two places, (u, v) in [0, 1]^2")


def read_prompts(path: str | Path) -> Prompts:
    """Prompts of one's own, as JSON with the fields of Prompts, Concept and Composite."""
    return read_json(path, Prompts)


def photo(animal: str) -> str:
    return f"A {animal}, full body, highly detailed photograph."


def eating(food: str) -> str:
    return f"Eating {food}, highly detailed photograph."


def view(place: str) -> str:
    return f"A {place}, wide view, highly detailed photograph."


ANIMALS = ("dog", "horse", "cat", "rabbit", "elephant", "owl")  # the first three *
STYLES = (
    ("vangogh", "An oil-painting in the style of Van Gogh.", "Gogh"),  # *
    ("monet", "A watercolor-painting in the style of Monet.", "Monet"),  # *
    ("hokusai", "A woodblock print in the style of Hokusai.", "Hokusai"),  # *
    ("picasso", "A cubist painting in the style of Picasso.", "Picasso"),
    ("klimt", "A gilded painting in the style of Klimt.", "Klimt"),
    ("warhol", "A screen print in the style of Warhol.", "Warhol"),
)
FOODS = (
    ("sushi", eating("sushi with chopsticks"), "sushi"),  # *
    ("croissant", eating("a croissant"), "croissant"),  # *
    ("pizza", eating("a pizza"), "pizza"),
    ("noodles", eating("noodles"), "noodles"),
    ("strawberry", eating("a strawberry"), "strawberry"),
    ("cheese", eating("cheese"), "cheese"),
)
PLACES = ("beach", "mountain", "forest", "desert", "harbor", "meadow")
PAPER_CONCEPTS = ("dog", "horse", "cat", "vangogh", "monet", "hokusai", "sushi", "croissant")

SDXL_PROMPTS = Prompts(
    concepts=(
        *(Concept(animal, "animals", photo(animal), animal) for animal in ANIMALS),
        *(Concept(name, "art styles", prompt, word) for name, prompt, word in STYLES),
        *(Concept(name, "foods", prompt, word) for name, prompt, word in FOODS),
        *(Concept(place, "places", view(place), place) for place in PLACES),
    ),
    composites=(
        Composite(
            "vangogh+cat+sushi",
            "A cat eating sushi with chopsticks, oil-painting in the style of Van Gogh.",
            ("vangogh", "cat", "sushi"),
        ),
        Composite(
            "vangogh+cat",
            "A cat, full body, oil-painting in the style of Van Gogh.",
            ("vangogh", "cat"),
        ),
        Composite("sushi+cat", "A cat eating sushi with chopsticks.", ("sushi", "cat")),
    ),
    locality=(
        "a beautiful photograph with a horse in the middle, "
        "a dog on the left, and a cat on the right"
    ),
    places=((0.2, 0.6), (0.8, 0.6), (0.5, 0.6), (0.5, 0.15)),
)


def prompts_for(model: Path, given: Path | None = None) -> Prompts:
    """Those that are given, else those that come with a model, else the paper's."""
    own = given or model / "prompts.json"
    return read_prompts(own) if given or own.is_file() else SDXL_PROMPTS
