"""Prompts as condition sets: the conditions are the words that carry meaning, each of them whole.

    C = {word_1, ..., word_K},    C_{-k} = the prompt without word k          (section G)

Stop words ("a", "the", ...) stay in the prompt and are never left out themselves."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jaxtyping import Float
from torch import Tensor

from composcope.diffusion.denoiser import ConditionSet, Conds

STOP = "a an and are as at by for from in is it its of on or that the this to was with"
STOP_WORDS = frozenset(re.findall(r"\w+", STOP))
Encode = Callable[[Sequence[str]], Float[Tensor, "prompts features"]]


class Word(NamedTuple):
    """A word of a prompt and where it stands: the same word may come twice."""

    text: str
    start: int

    def __str__(self) -> str:
        return self.text

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def prompt_words(prompt: str) -> tuple[Word, ...]:
    """The words of a prompt but for stop words; hyphens and apostrophes belong to a word."""
    matches = re.finditer(r"\w+(?:[-'’]\w+)*", prompt)
    found = (Word(match.group(), match.start()) for match in matches)
    return tuple(word for word in found if word.text.lower() not in STOP_WORDS)


def without(prompt: str, left_out: Sequence[Word]) -> str:
    """The prompt with these words cut out and the spaces they leave closed."""
    for word in sorted(left_out, key=lambda word: -word.start):
        prompt = prompt[: word.start] + prompt[word.end :]
    return re.sub(r"\s+(?=[,.;:!?]|$)", "", re.sub(r"\s+", " ", prompt)).strip()


@dataclass(frozen=True)
class Words:
    """The conditioner of one prompt: a condition set is some of its words, others are cut out."""

    noun: ClassVar[str] = "word"
    has_places: ClassVar[bool] = False
    prompt: str
    encode: Encode

    @property
    def all(self) -> tuple[Word, ...]:
        return prompt_words(self.prompt)

    @property
    def features(self) -> int:
        return self.encode([self.prompt]).shape[1]

    def reduced(self, some: Sequence[Word]) -> str:
        """The prompt with no more than these of its words."""
        return without(self.prompt, [word for word in self.all if word not in some])

    def __call__(self, condition_sets: Sequence[Sequence[Word]], seed: int = 0) -> Conds:
        return self.encode([self.reduced(some) for some in condition_sets])

    def left_out(self, condition_set: ConditionSet, seed: int = 0) -> Conds:
        """Row 0: the prompt; row k + 1: without word k of the set."""
        fewer = [tuple(w for w in condition_set if w != word) for word in condition_set]
        return self([condition_set, *fewer])


@dataclass(frozen=True)
class WordGroups(Words):
    """The same with groups of words as conditions: all words of a group are cut out together."""

    noun: ClassVar[str] = "group of words"

    def __call__(self, condition_sets: Sequence[ConditionSet], seed: int = 0) -> Conds:
        said = [[word for group in some for word in group] for some in condition_sets]
        return super().__call__(said)


def alike(
    words: Sequence[Word], maps: Float[Tensor, "word height width"], count: int
) -> list[tuple[Word, ...]]:
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    ""
    """At most `count` groups of words with alike influence maps: complete linkage of cosines."""
    from scipy.cluster.hierarchy import fcluster, linkage  # it takes a second to load

    if len(words) < 2:
        return [tuple(words)]
    flat = maps.flatten(1).double().clamp_min(1e-12).cpu().numpy()
    label = fcluster(linkage(flat, "complete", metric="cosine"), count, "maxclust")
    pairs = list(zip(words, label, strict=True))
    return [tuple(word for word, own in pairs if own == one) for one in dict.fromkeys(label)]


THIRDS = {"left": 0, "middle": 1, "center": 1, "right": 2}
# "a cat left of a dog" says where the cat is from the dog, "on the left of the picture" where it is
BESIDE = re.compile(r"\s+of\b(?!\s+(the|this)\s+(picture|image|photo|frame|scene))", re.IGNORECASE)


def thirds(prompt: str) -> dict[Word, int]:
    """The third of the width that each word speaks of: that of the place named in its clause, if
    there is one; being left of something else is no place."""
    found: dict[Word, int] = {}
    for clause in re.finditer(r"(?:(?!,| and | with ).)+", prompt):
        inside = [
            word for word in prompt_words(prompt) if clause.start() <= word.start < clause.end()
        ]
        places = [word for word in inside if word.text.lower() in THIRDS]
        if len(places) == 1 and not BESIDE.match(prompt, places[0].end):
            found |= dict.fromkeys(inside, THIRDS[places[0].text.lower()])
    return found


def dominant(influence: Float[Tensor, " conditions"]) -> list[int]:
    """The fewest strongest conditions, the weakest of which has >= 2x the next's influence."""
    ranked = influence.argsort(descending=True)
    for count in range(1, len(ranked)):
        weakest, following = influence[ranked[count - 1]], influence[ranked[count]]
        if weakest >= 2 * following and weakest > 0:
            return ranked[:count].tolist()
    return []
