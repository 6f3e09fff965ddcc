"""Cards: what each shipped model was trained on, for how long, what it can and cannot do, its rows.

    cards(folder) -> Markdown by file name

All of it is read from a model's config.json, log.jsonl and rows; the detectors' from the notes in
their weights, the text model's from the file that trains it.
"""

import ast
import inspect
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

from composcope.evaluation.detect import About
from composcope.experiments import text_control
from composcope.explore.models import training_sentence as training_words
from composcope.files import parse_json, read_lines
from composcope.report.cells import Cell, Html, Table, command_cell
from composcope.report.commands import command
from composcope.report.looks import label
from composcope.report.marks import paper_words, two, verdict, with_interval
from composcope.report.material import FINAL, k_max_beside_paper, of_side, one
from composcope.report.tables import by_number, by_places, localities
from composcope.results import Row, gather, only, where
from composcope.runs.config import Config, Teacher, flat
from composcope.runs.model import conditioner_of
from composcope.scenes.labels import most_unlabelled
from composcope.scenes.parts import SumOfParts
from composcope.study.effects import Side
from composcope.study.paper import paper_k_max
from composcope.study.table import BY_NAME, LABELS, trained_on
from composcope.tensors import read_about, read_tensors
from docs.pages.markdown import code, folded, joined, picture, plain, set_apart, table
from docs.pages.sentences import SHEET, SHEET_WORDS

SHOWN_K = (1, 3, 6, 9, 12)
HALF = 0.5


def cards(folder: Path) -> dict[str, str]:
    """A card for each model below the folder, one for the detectors, and the list of all."""
    rows = gather([folder])
    made: dict[str, str] = {}
    lines: list[Sequence[Cell]] = []
    for path in sorted(folder.glob("*/config.json")):
        name = path.parent.name
        config = Config.load(path)
        made[f"{name}.md"] = card(path.parent, config, where(rows, run=name))
        lines.append(list_line(name, config, rows))
    for path in sorted(folder.glob("*/model_index.json")):
        name = path.parent.name
        made[f"{name}.md"] = text_card(name, where(rows, run=name))
    detectors = sorted(
        folder.glob("detector*.safetensors"), key=lambda path: (len(path.name), path)
    )
    if detectors:
        made["detectors.md"] = detector_card(detectors)
    made["README.md"] = listed(made, lines, without_weights(folder, rows))
    return made


# ----------------------------------------------------------------------------
# The list of cards.


def list_line(name: str, config: Config, rows: Sequence[Row]) -> list[Cell]:
    reached = one(rows, Side(name), "length/k_max", rule="paper")
    alone = one(rows, Side(name), "length/k_max", rule="places")
    nine = one(rows, Side(name), "length/found", K=9)
    size = config.architecture.resolution
    return [
        link(name),
        f"no images: taught by {taught_by(config.teacher)}"
        if config.teacher
        else trained_on(config),
        f"{size} x {size}",
        f"{seen(config):,} noisy" if config.teacher else f"{seen(config):,}",
        *(with_interval(row) if row else "" for row in (reached, alone, nine)),
    ]


def link(name: str) -> Html:
    return Html(f"<b>{name}</b>")


def without_weights(folder: Path, rows: Sequence[Row]) -> list[str]:
    """Runs with a folder of rows of their own, but no weights; small runs of one experiment share
    a folder."""
    runs = dict.fromkeys(row.run for row in rows if row.run and row.snapshot)
    own = [run for run in runs if (folder / run).is_dir()]
    return [run for run in own if not (folder / run / "config.json").exists()]


def listed(made: Mapping[str, str], lines: Sequence[Sequence[Cell]], others: Sequence[str]) -> str:
    head = ("model", "trained on", "pixels", "images seen", "K_max [95 %]")
    head += ("K_max by places [95 %]", "filled of 9 [95 %]")
    shown = table(Table(head, lines))
    for file in made:
        name = file.removesuffix(".md")
        shown = shown.replace(f"| **{name}** |", f"| [{name}]({file}) |")
    more = {"text_control.md": "a small text-to-image model of SDXL's structure"}
    more["detectors.md"] = "the networks that count what was drawn"
    rest = [
        f"- [{file.removesuffix('.md')}]({file}): {more[file]}" for file in more if file in made
    ]
    parts = [
        "# Cards of the models",
        "A card says what a model was trained on and for how long and what it can and cannot do. It "
        "shows pictures that the model drew and what was measured. Cards are made by `make pages` "
        "from what ships. K_max is the largest number of objects up to which a model draws what it is "
        "asked ([Method](../method.md#k_max)). *By places*, objects that nobody asked for are not "
        "judged: models whose labels left objects out add some. *Filled of 9* is how many of nine places get their "
        "object. Brackets hold 95 % intervals. *Trained on* lists the number of objects in an image, "
        "the [conditioner](../conditioners.md#built-in) (what a label is) and which objects were "
        "labelled.",
        shown,
        "\n".join(rest),
    ]
    if others:
        named = ", ".join(code(run) for run in others)
        parts.append(
            f"Only rows ship of {named}. Their weights are left out to keep the package small. "
            "`composcope rows --where run=NAME` prints the rows."
        )
    return joined(parts)


# ----------------------------------------------------------------------------
# The card of a model.


def card(folder: Path, config: Config, rows: Sequence[Row]) -> str:
    name = folder.name
    side = Side(name)
    asked = conditioner_of(config)
    parts = [
        f"# {name}",
        summary(name, config),
        WORDS,
        "## What it was trained on",
        table(Table(("what", "which"), training(folder, config))),
        folded("Every setting", settings(config)),
        "## What it can do",
        bullets(can(side, config, asked, rows)),
        "## What it cannot do",
        bullets(cannot(side, config, asked, rows)),
        "## Use it",
        usage(name, asked),
        "## Its pictures",
        sheet(folder, asked),
        "## What was measured",
        *row_tables(side, rows),
    ]
    return joined(parts)


WORDS = (
    "K is the number of conditions asked for. Square brackets hold 95 % intervals; v1 and v3 are "
    "versions of the paper. "
    "[Method](../method.md) explains the other words."
)


def summary(name: str, config: Config) -> str:
    """What it is, in words, and which figures of the paper it serves."""
    said = plain(training_words(config))
    if config.teacher:
        said = (
            f"A student of {taught_by(config.teacher)}: it learned to do in one pass what its teacher "
            "does in several."
        )
    run = BY_NAME.get(name)
    if run is None:
        return said
    shows = plain(run.shows)
    known = not shows.startswith("not in the paper")
    return f"{said} In the paper: {shows}." if known else f"{said} It is {shows}."


def taught_by(teacher: Teacher) -> str:
    return label(teacher.run, teacher.intervention)


def bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {plain(line)}" for line in lines)


VIEWS = {
    "full": "the whole frame of CLEVR, squeezed to a square",
    "square": "the centre square of CLEVR's frame",
}
NETS = {"global": "sees the whole image", "local": "sees patches, cell by cell"}


def training(folder: Path, config: Config) -> list[list[Cell]]:
    fewest, most = config.objects
    size = config.architecture.resolution
    source = config.data or "scenes drawn as they are needed, none twice"
    learned_from = "images seen"
    if config.teacher:
        source = "none were seen: it learned from conditions and what its teacher made of noise"
        learned_from = "noisy images learned from"
    weights = sum(part.numel() for part in read_tensors(folder / "model.safetensors").values())
    lines: list[list[Cell]] = [
        ["images", f"{size} x {size} pixels, {VIEWS[config.view]}; {source}"],
        ["objects in an image", f"{fewest} to {most}" if most > fewest else f"{most}"],
        ["conditioner", config.conditioner],
        ["labels", LABELS[config.labels]],
        ["network", f"{NETS[config.net]}; {weights:,} weights"],
        [learned_from, f"{seen(config):,}, in batches of {config.recipe.batch}"],
        ["time", hours(folder / "log.jsonl", config)],
        ["seed", str(config.recipe.seed)],
    ]
    if config.init:
        lines.append(["began with the weights of", Path(config.init).name])
    return lines


def seen(config: Config) -> int:
    """Images, or noisy images: a training ends with a whole batch."""
    return ceil(config.recipe.images / config.recipe.batch) * config.recipe.batch


def hours(log: Path, config: Config) -> str:
    """From the speeds in the log; parts of a run may have been slowed by others beside it."""
    lines = read_lines(log, dict) if log.exists() else []
    seconds = 0.0
    before = 0
    for line in lines:
        seconds += (line["images"] - before) / line["speed"]
        before = line["images"]
    if not seconds:
        return "not known"
    threads = config.threads
    cores = f" on {threads} core{'s' if threads > 1 else ''}" if threads else ""
    length = f"{seconds / 3600:.1f} hours" if seconds > 7200 else f"{seconds / 60:.0f} minutes"
    return f"{length}{cores}, by its log"


def settings(config: Config) -> str:
    lines = [[name, spelled(value)] for name, value in flat(config).items() if value is not None]
    return table(Table(("setting", "value"), lines))


def spelled(value: object) -> str:
    """As a reader would write it, settings inside settings too."""
    if isinstance(value, dict):
        parts = [
            f"{name} ({spelled(inner)})" if isinstance(inner, dict) else f"{name} {spelled(inner)}"
            for name, inner in value.items()
        ]
        return ", ".join(parts)
    if isinstance(value, tuple):
        return ", ".join(map(spelled, value)) or "none"
    return str(value)


def can(side: Side, config: Config, asked: SumOfParts | None, rows: Sequence[Row]) -> list[str]:
    lines = []
    reached = one(rows, side, "length/k_max", rule="paper")
    strict = one(rows, side, "length/k_max", rule="strict")
    alone = by_places(rows, side)
    paper = () if config.teacher else paper_k_max(config)  # the paper has no students
    beside = verdict(k_max_beside_paper(rows, side), paper).words
    theirs = f" (paper: {paper_words(paper)}; {beside})" if paper else ""
    if reached:
        said = "" if alone else theirs
        lines.append(f"K_max is {with_interval(reached)} by the paper's rule{said}.")
    if eight := one(rows, side, "length/k_max", rule="eight"):
        lines.append(
            f"On eight images, as many as the paper counted, it is {with_interval(eight)}."
        )
    if alone:
        lines.append(
            "By places alone, where objects that nobody asked for are not judged, it is "
            f"{alone}{theirs}."
        )
    if strict:
        lines.append(f"K_max is {with_interval(strict)} by our own strict rule.")
    found = {row.K: row for row in of_side(rows, side, "length/found")}
    shown = [f"{with_interval(found[K])} of {K}" for K in SHOWN_K if K in found]
    what = "Places filled" if asked and asked.has_places else "Conditions met"
    if shown:
        lines.append(f"{what}, on average: {', '.join(shown)}.")
    share = one(rows, side, "locality/conditional_locality")
    if share:
        chance = f" (chance: {two(share.chance)})" if share.chance else ""
        lines.append(
            f"Its conditional locality, the share of a condition's effect that lies near its place, "
            f"is {with_interval(share)}{chance}."
        )
    return lines or ["Nothing of this is measured."]


def cannot(side: Side, config: Config, asked: SumOfParts | None, rows: Sequence[Row]) -> list[str]:
    lines = []
    exact = sorted(of_side(rows, side, "length/exact"), key=lambda row: row.K or 0)
    failed = [row for row in exact if row.K and float(row.value or 0) < HALF]
    if failed:
        lines.append(
            "It often fails at these numbers of conditions, where fewer than half of its images show "
            f"exactly what is asked: {', '.join(by_number(failed, per_cent))}."
        )
    none = one(rows, side, "length/drawn", K=0)
    if none and none.value:
        lines.append(
            f"Asked for nothing, it still draws {with_interval(none)} objects in an image."
        )
    extras = most_unlabelled(config.labels, config.objects[1])
    if extras:
        whose = "an image that its teacher was trained on" if config.teacher else "a training image"
        lines.append(
            f"It adds objects nobody asked for. Up to {extras} of {whose} had no label, so K_max "
            "by the paper's rule allows as many extras."
        )
    if asked is None:
        lines.append("Nothing can be asked of it.")
    else:
        noun = "place" if asked.has_places else asked.noun
        lines.append(f"It can be asked for {noun}s only, and is tested with at most {asked.most}.")
    size = config.architecture.resolution
    lines.append(f"It draws CLEVR scenes of {size} x {size} pixels and nothing else.")
    return lines


def per_cent(row: Row) -> str:
    return f"{two(100 * float(row.value or 0))} %"


def usage(name: str, asked: SumOfParts | None) -> str:
    words = f' --asked "{asked.like}"' if asked else ""
    return (
        f"```sh\ncomposcope sample {name}{words} -n 4 --out sheet.png\n```\n\n"
        f"In Python: `composcope.load({name!r})`. In a browser: `composcope explore {name}`."
    )


BY_K = ("exact", "complete", "found", "missing", "extra", "merged")
BY_K_NOTE = (
    "By the number K of conditions asked for. *Complete* is the share of images in which nothing "
    "that was asked for is missing, *exact* that in which, in addition, nothing is extra. The "
    "others are numbers of objects in an image: found as asked, missing, extra, and missing because "
    "they merged with a neighbour."
)


def row_tables(side: Side, rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["Nothing: no rows ship."]
    by_k: list[list[Cell]] = []
    values = {what: of_side(rows, side, f"length/{what}") for what in BY_K}
    for K in sorted({row.K for own in values.values() for row in own if row.K is not None}):
        found = [[row for row in values[what] if row.K == K] for what in BY_K]
        judged = [own[-1] for own in values.values() if own]
        again = command_cell(command(of_side(rows, side, "length/found") or judged))
        by_k.append([str(K), *(with_interval(own[-1]) if own else "" for own in found), again])
    parts = []
    if by_k:
        parts += [BY_K_NOTE, table(Table(("K", *BY_K, "command"), by_k))]
    looks = localities(rows, [side])
    if looks.lines:
        parts += ["Where its score looks:", table(looks)]
    every = [
        [*setting(row), with_interval(row), command_cell(command([row]))]
        for row in where(rows, what="length/k_max")
    ]
    if every:
        head = ("snapshot", "intervention", "radius", "asked", "tolerance", "rule", "K_max [95 %]")
        head += ("command",)
        parts.append(
            "K_max for every way of asking (*paper*: the paper's test places; *random*: conditions "
            "drawn at random) and every rule (*paper*: the paper's on all images; *places*: the same, "
            "but objects that nobody asked for are not judged; *eight*: on eight images; *strict*: "
            "ours). *First*, *early* and *middle* are weights from an eighth, a quarter and half of "
            "the training:"
        )
        parts.append(table(Table(head, every)))
    parts.append(f"All {len(rows):,} rows: `composcope rows --where run={side.run}`.")
    return parts


def setting(row: Row) -> list[Cell]:
    return [
        "final" if row.snapshot in FINAL else str(row.snapshot),
        row.intervention or "",
        "" if row.radius is None else two(row.radius),
        row.asked or "",
        "" if row.tolerance is None else two(row.tolerance),
        (row.rule or "").replace("_", ", "),
    ]


def sheet(folder: Path, asked: SumOfParts | None) -> str:
    """The sheet that its evaluation kept, where one ships."""
    if not (folder / "sheet.png").exists():
        return f"No sheet ships. `composcope evaluate {folder.name}` draws one."
    marks = "a ring where an object was found"
    if asked is not None and asked.has_places:
        marks = f"a red dot at each place asked for, {marks}"
    words = f"Images of {folder.name}, a row for each K from 0 on: {marks}."
    return picture(f"../../composcope/models/{folder.name}/sheet.png", words)


# ----------------------------------------------------------------------------
# What is no run: the text model and the detectors.


def text_card(name: str, rows: Sequence[Row]) -> str:
    """Its training, in the words of the file that does it; what was measured of its words."""
    parts = [
        f"# {name}",
        "A small text-to-image model of SDXL's structure (SDXL is a large one), for which the meaning "
        "of every word is known.",
        "## What it was trained on",
        quoted(text_control),
        "## What it can do",
    ]
    lines: list[Sequence[Cell]] = []
    thirds = [row for row in where(rows, what="features/share_in_third") if row.value is not None]
    highest = max((row.sigma or 0 for row in thirds), default=0)
    for row in where(thirds, sigma=highest):
        chance = "" if row.chance is None else two(row.chance)
        lines.append([str(row.condition), with_interval(row), chance])
    note = (
        "The share of a word's effect, at the highest noise level, that lies in the third of the "
        "picture that its phrase names."
    )
    parts.append(table(Table(("word", "share [95 %]", "chance"), lines, note)))
    parts += concepts_inside(rows)
    parts += [
        "## What it cannot do",
        "It knows only the few words of its captions, and draws no photographs. It stands in for "
        "SDXL, a large text-to-image model, where that cannot be run.",
        "## Use it",
        f'```sh\ncomposcope features --sdxl {name} --prompt "a red cube on the left"\n```\n\n'
        f"In a browser, where it draws what a sentence asks for: `composcope explore {name}`.",
        "## Its pictures",
        picture(f"../{SHEET}", SHEET_WORDS),
        "## What was measured",
        f"All {len(rows):,} rows: `composcope rows --where run={name}`. "
        "The [results](../results.md#colours-and-words-is-it-local-elsewhere) show their figures.",
    ]
    return joined(parts)


def concepts_inside(rows: Sequence[Row]) -> list[str]:
    """How alike concepts of one category are beside those of two, layer by layer, at high noise."""
    ratios = where(rows, what="features/ratio", level="high")
    by_layer = {maps: where(ratios, maps=maps) for maps in ("hidden", "attention")}
    layers = {maps: [row for row in own if row.index is not None] for maps, own in by_layer.items()}
    if not all(layers.values()):
        return []
    highest = {
        maps: max(own, key=lambda row: row.estimate.value).layer for maps, own in layers.items()
    }
    middle = {
        maps: with_interval(only(own, part="mean", layer="mid")) for maps, own in by_layer.items()
    }
    lines: list[Sequence[Cell]] = [
        [str(hidden.layer), with_interval(hidden), with_interval(attention)]
        for hidden, attention in zip(*layers.values(), strict=True)
    ]
    note = (
        "Inside it, at high noise: how alike (mean cosine) concepts of one category are, divided by "
        "how alike those of two are. In the paper's SDXL this rises to the middle block and falls "
        f"again. Here it is highest in {highest['hidden']} in hidden states and in "
        f"{highest['attention']} in attention maps; in the middle block (mid) it is "
        f"{middle['hidden']} and {middle['attention']}."
    )
    return [table(Table(("layer", "hidden states [95 %]", "attention maps [95 %]"), lines, note))]


def quoted(module) -> str:
    """The words with which a file opens, formulas as they stand there."""
    return set_apart(ast.get_docstring(ast.parse(inspect.getsource(module))) or "")


DETECTOR_NOTE = (
    "Perfect images show exactly what is asked. How many of them, in per cent, the detector misreads: "
    "it misses an object or its place, or finds one too many."
)


def detector_card(paths: Sequence[Path]) -> str:
    parts = [
        "# detectors",
        "A detector is a small network that finds the objects of a picture: where they are, their "
        "colour, shape and size. There is one each for images of 32, 64 and 128 pixels a side; "
        "others are resized. The detectors were trained on our own renders, blurred and noisy "
        "as drawn images can be (`python -m composcope.experiments.detector`). They know the "
        "objects of CLEVR and no others, and are least sure where objects touch.",
        "In Python: `composcope.detect(images)`. Evaluations call it, and allow for the errors "
        "below ([K_max](../method.md#k_max)). *paper* are the paper's twelve test places, *random* "
        "conditions drawn at random. The view *full* is CLEVR's whole frame, squeezed to a square, "
        "and *square* its centre.",
    ]
    for path in paths:
        weights = sum(part.numel() for part in read_tensors(path).values())
        about: About = parse_json(read_about(path)["about"], About, str(path))
        lines: list[Sequence[Cell]] = []
        Ks = [K for K in SHOWN_K if any(K in error.right for error in about.errors)]
        for error in about.errors:
            within = "" if error.tolerance is None else two(error.tolerance)
            wrong = {K: 100 * count / error.scenes for K, count in error.right.items()}
            shares = [two(wrong[K]) if K in wrong else "" for K in Ks]
            asked = f"{error.noun}s, {error.way}"
            lines.append([asked, error.view, within, f"{error.scenes:,}", *shares])
        head = ("asked", "view", "tolerance", "images for each K", *(f"K = {K}" for K in Ks))
        parts += [f"## {path.stem}", f"{weights:,} weights."]
        parts.append(table(Table(head, lines, DETECTOR_NOTE)))
    return joined(parts)
