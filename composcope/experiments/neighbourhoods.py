"""Question (ours): can conditions without places be made local, if the model itself says where
each of them acts?

    python -m composcope.experiments.neighbourhoods

Local conditions need neighbourhoods. Here they come from influence maps (equation 10) of the model
at the very image that is drawn: every pixel hears the condition that acts most on it (`own`),
every condition gets a place of its own where it acts most (`peaks`), or the pixels are cut into
regions in each of which one condition counts twice (`clusters`; without regions, for comparison,
`everywhere`). Asked for colours, and for phrases of the small text-to-image model, with and
without, counted by the detector. `words` is told no phrases: words of a prompt whose influence
maps are alike are a group, and groups have clusters as phrases do. Images are kept: the same
command goes on where it was stopped."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from composcope.diffusion.denoiser import Drawer
from composcope.diffusion.sample import Levels, noise, sample
from composcope.errors import InputError, check_name
from composcope.evaluation import Found, detect, evaluate
from composcope.evaluation.detect import detector_of
from composcope.experiments import command
from composcope.experiments.text_control import PLACES
from composcope.features import sdxl
from composcope.features.words import Word, WordGroups, Words, alike, prompt_words
from composcope.files import write_png
from composcope.locality import LocalConditions, influence, intervene
from composcope.locality.neighbourhoods import Clusters
from composcope.report.interventions import neighbourhood_figure
from composcope.report.sheets import sheet
from composcope.results import Row, add_rows, mean, row
from composcope.results.arrays import read_arrays, write_arrays
from composcope.runs import load
from composcope.scenes.scene import COLORS, SHAPES
from composcope.study.table import STEPS

WAYS = ("plain", "own", "peaks", "clusters", "everywhere", "words")  # words: of prompts alone
Phrase = tuple[str, str, int]  # colour, shape, third of the width


def main(
    runs: tuple[str, ...] = ("color",),
    text: str | None = "text_control",
    num: int = 48,
    most: int = 12,
    steps: int = STEPS,
    out: Path = Path("results/neighbourhoods.jsonl"),
    ways: tuple[str, ...] = WAYS,
) -> list[Row]:
    """What is drawn of what is asked, with and without neighbourhoods of the model's own.

    most: the largest K; conditions of which there are fewer stop there."""
    if num < 2:
        raise InputError("a comparison needs at least 2 images of each kind")
    for way in ways:
        check_name("way", way, WAYS)
    folder = out.with_suffix("")
    rows: list[Row] = []
    for run in runs:
        model = load(run)
        for way in (way for way in ways if way != "words"):
            keep = folder / f"{model.name}-{way}"
            found = evaluate(drawer_of(model, way), range(most + 1), num, steps=steps, keep=keep)
            add_rows(out, found)
            rows += found
    if text is not None:
        found = text_rows(text, num, steps, ways, folder)
        add_rows(out, found)
        rows += found
    write_png(folder / "neighbourhoods.png", neighbourhood_figure(rows))
    for one in rows:
        if one.what in ("length/found", "text/found") and one.K:
            print(f"{one.run} {one.intervention or 'plain'}: {one.estimate} of {one.K}")
    print(f"rows: {out}; images and figure: {folder}; composcope report shows them")
    return rows


def phrases_of(K: int, index: int) -> list[Phrase]:
    """K objects of different colours, each in a third of its own, a function of the index."""
    chance = np.random.default_rng([K, index])
    thirds = sorted(chance.permutation(len(PLACES))[:K].tolist())
    colors = chance.permutation(list(COLORS))[:K].tolist()
    pairs = zip(colors, thirds, strict=True)
    return [(color, str(chance.choice(SHAPES)), third) for color, third in pairs]


def words_of(phrase: Phrase) -> str:
    color, shape, third = phrase
    return f"a {color} {shape} {PLACES[third]}"


def drawer_of(model: Drawer, way: str) -> Drawer:
    return model if way == "plain" else intervene(model, way)


def text_rows(name: str, num: int, steps: int, ways: Sequence[str], folder: Path) -> list[Row]:
    """For one to three phrases (in training, one or two): those that are met, and objects drawn."""
    model = sdxl.load(name)
    rows: list[Row] = []
    for way in ways:
        intervention = None if way == "plain" else way
        kept = folder / f"{name}-{way}"
        images: list[np.ndarray] = []
        for K in range(1, len(PLACES) + 1):
            about = {"run": name, "intervention": intervention, "K": K, "steps": steps, "num": num}
            path = kept / f"K{K}.npz"
            asked = [phrases_of(K, index) for index in range(num)]
            if path.exists():
                drawn = read_arrays(path, about)["images"]
            else:
                drawn = drawn_phrases(model, way, asked, model.levels(steps))
                write_arrays(path, about, {"images": drawn})
            images.append(drawn[:4])
            found = detect(drawn)
            met = [met_by(some, things) for some, things in zip(asked, found, strict=True)]
            at = {"run": name, "intervention": intervention, "K": K, "steps": steps, "seed": 0}
            own = {**at, "detector": detector_of(drawn)}
            rows.append(row("text/found", mean(np.array(met)), **own))
            rows.append(row("text/drawn", mean(np.array([len(some) for some in found])), **own))
            if way == "words":
                right = [are_phrases(model, some, i, steps) for i, some in enumerate(asked)]
                rows.append(row("text/grouped", mean(np.array(right)), **at))
        blank = np.concatenate(images)
        columns = len(images[0])
        write_png(kept / "sheet.png", sheet(blank, [()] * len(blank), columns=columns))
    return rows


def drawn_phrases(
    model: sdxl.SDXL, way: str, asked: Sequence[list[Phrase]], levels: Levels
) -> np.ndarray:
    """An image of each set of phrases, from seeds 0, 1, 2, ..."""
    pictures = []
    for index, phrases in enumerate(asked):
        said = [words_of(phrase) for phrase in phrases]
        if way == "words":
            conditioner = WordGroups(model.conditioner.prompt(said), model.encode)
            drawer: Drawer = LocalConditions(model, conditioner, Clusters())
            cond = drawer.conditioner([groups_of(model, said, index, float(levels[0]))])
        else:
            drawer = drawer_of(model, way)
            cond = drawer.conditioner([said])
        x = sample(drawer, [index], drawer.shape, cond, levels, "euler")
        pictures.append(drawer.decode(x)[0])
    return np.stack(pictures)


def groups_of(
    model: sdxl.SDXL, said: Sequence[str], seed: int, sigma: float
) -> list[tuple[Word, ...]]:
    """Words of the prompt that act alike at the noise that the image of this seed begins with, in
    as many groups as there are phrases."""
    words = Words(model.conditioner.prompt(said), model.encode)
    x = sigma * noise([seed], model.shape).to(model.device)
    return alike(words.all, influence(model, x, sigma, words, words.all), len(said))


def are_phrases(model: sdxl.SDXL, phrases: Sequence[Phrase], seed: int, steps: int) -> bool:
    """Whether the groups that were found are the words of the phrases."""
    said = [words_of(phrase) for phrase in phrases]
    groups = groups_of(model, said, seed, float(model.levels(steps)[0]))
    told = [[word.text for word in prompt_words(one)] for one in said]
    return [[word.text for word in group] for group in groups] == told


def met_by(asked: Sequence[Phrase], found: Sequence[Found]) -> int:
    """Phrases with an object of their colour in their third; each object counts once."""
    left = list(found)
    met = 0
    for color, _, third in asked:
        match = next((f for f in left if f.color == color and int(3 * f.x) == third), None)
        if match is not None:
            left.remove(match)
            met += 1
    return met


if __name__ == "__main__":
    command(main)
