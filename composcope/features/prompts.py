"""What to ask of a text-to-image model, and how: concepts, composites, a prompt with places.

The eight concepts marked * and the composites are the paper's (section G), as is the prompt for
locality. Version 3 has 24 prompts in 4 categories and names three of these; the other sixteen
prompts and the category "places" are ours."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from composcope.errors import InputError
from composcope.files import read_json
from composcope.options import File, Prompt, check_unused

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


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
    locality: str  # the prompt whose words are left out one by one
    # where its gradients are taken, (u, v); influence over time is shown at the first two
    places: tuple[tuple[float, float], ...]

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


@dataclass(frozen=True)
class TextSettings:
    """With --sdxl: how a text-to-image model is asked, and looked at."""

    prompt: Prompt = None
    """With --sdxl: only this prompt; where its words act and what places look at, in one image."""
    prompts: File = None
    """JSON with concepts, composites, locality and places; else those that come with the model,
    else the paper's."""
    dtype: Literal["fp32", "bf16", "fp16"] = "fp32"  # In which precision SDXL's U-Net computes.
    seeds: int = 10  # Samples of each prompt of SDXL; of --prompt there is one.
    steps: int = 15
    """Of SDXL, for features; looked at are the first (high noise), the middle and the last."""
    locality_steps: int = 50
    """Of SDXL, for places and words; influence is measured at ten of them."""
    guidance: float = 5.0
    """Classifier-free guidance of SDXL's samples; activations are those of the denoiser asked for
    the prompt."""
    grid: int = 4  # SDXL's activations are averaged to at most this many places a side.

    def __post_init__(self) -> None:
        if self.seeds < 2 or self.steps < 3 or self.locality_steps < 3 or self.grid < 1:
            raise InputError("--seeds is at least 2, --steps and --locality-steps 3, --grid 1")
        if self.prompt is not None and not self.prompt.strip():
            raise InputError("--prompt is empty; leave it out for the prompts of the paper")

    def check_unused(self) -> None:
        """An InputError for any that was given, where no text-to-image model is."""
        why = "is asked of a text-to-image model: give --sdxl MODEL in place of a RUN"
        check_unused(self, " ".join(vars(self)), why)

    def settings(self, asked: Prompts, model: str, seed: int) -> tuple:
        """All that changes what is measured; more images of the same do not."""
        steps = (self.dtype, self.steps, self.locality_steps)
        return (self.prompt or asked, model, *steps, self.guidance, self.grid, seed)


def read_prompts(path: str | Path) -> Prompts:
    """Prompts of one's own, as JSON with the fields of Prompts, Concept and Composite."""
    return read_json(path, Prompts)


ANIMALS = ("dog", "horse", "cat", "rabbit", "elephant", "owl")  # the first three *
STYLES = {
    "vangogh": "An oil-painting in the style of Van Gogh.",  # *
    "monet": "A watercolor-painting in the style of Monet.",  # *
    "hokusai": "A woodblock print in the style of Hokusai.",  # *
    "picasso": "A cubist painting in the style of Picasso.",
    "klimt": "A gilded painting in the style of Klimt.",
    "warhol": "A screen print in the style of Warhol.",
}
FOODS = {"sushi": "sushi with chopsticks", "croissant": "a croissant"}  # *
FOODS |= {
    "pizza": "a pizza",
    "noodles": "noodles",
    "strawberry": "a strawberry",
    "cheese": "cheese",
}
PLACES = ("beach", "mountain", "forest", "desert", "harbor", "meadow")
PAPER_CONCEPTS = ("dog", "horse", "cat", "vangogh", "monet", "hokusai", "sushi", "croissant")


def each(category: str, sentence: str, words: Iterable[str]) -> list[Concept]:
    """A concept for each word, all in the same sentence."""
    return [Concept(word, category, sentence.format(word), word) for word in words]


def paper_concepts() -> Iterator[Concept]:
    yield from each("animals", "A {}, full body, highly detailed photograph.", ANIMALS)
    for name, prompt in STYLES.items():
        yield Concept(name, "art styles", prompt, prompt.rstrip(".").split()[-1])
    for name, food in FOODS.items():
        yield Concept(name, "foods", f"Eating {food}, highly detailed photograph.", name)
    yield from each("places", "A {}, wide view, highly detailed photograph.", PLACES)


PAINTED = "oil-painting in the style of Van Gogh."
COMPOSITES = {
    ("vangogh", "cat", "sushi"): f"A cat eating sushi with chopsticks, {PAINTED}",
    ("vangogh", "cat"): f"A cat, full body, {PAINTED}",
    ("sushi", "cat"): "A cat eating sushi with chopsticks.",
}
SDXL_PROMPTS = Prompts(
    tuple(paper_concepts()),
    tuple(Composite("+".join(parts), prompt, parts) for parts, prompt in COMPOSITES.items()),
    "a beautiful photograph with a horse in the middle, a dog on the left, and a cat on the right",
    places=((0.2, 0.6), (0.8, 0.6), (0.5, 0.6), (0.5, 0.15)),
)


def prompts_for(model: Path, given: Path | None = None) -> Prompts:
    """Those that are given, else those that come with a model, else the paper's."""
    own = given or model / "prompts.json"
    return read_prompts(own) if given or own.is_file() else SDXL_PROMPTS
