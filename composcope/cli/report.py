"""`composcope report`: everything measured so far -> one HTML page."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

from composcope.cli import train
from composcope.cli.evaluate import in_the_paper
from composcope.cli.locality import RULES as K_MAX_RULES
from composcope.cli.locality import scatter_of
from composcope.errors import InputError
from composcope.files import write_text
from composcope.report.findings import Expected, Study, others, plain, summary
from composcope.report.locality import edges
from composcope.report.page import Picture, Time, page
from composcope.results import Row, read
from composcope.runs.config import Config
from composcope.runs.model import SHIPPED
from composcope.study.plan import RUNS


@dataclass(frozen=True)
class Args:
    """composcope report --study study/laptop --out report

    One self-contained page of every row and picture in the study's folder and in results/; where a run was not measured
    there, the rows that ship with the models stand in.
    """

    study: Path | None = None
    """folder of `composcope reproduce`, with its preset (study/laptop)"""
    results: Path = Path("results")
    """folder of rows and pictures made by single commands"""
    out: Path = Path("report")
    """folder of the page"""


# fmt: off
PICTURES = (  # the name of a file, the part it belongs to, the words under it, and whether it is folded away
    ("drawn", "table1", "{run}, drawn now: 1, 3, 6, 9 objects asked for{counts}. Dots: asked; rings: counted", False),
    ("sheet", "table1", "{run}: each row asks for one object more, from none. Dots: asked; rings: counted", True),
    ("heatmaps", "locality", "{run}: what each ringed pixel looks at, from high noise (left) to low; a cross is as "
     "strong as its condition's influence on that pixel", False),
    ("curves", "locality", "{run}: over noise levels, the influence of each condition on each pixel, the square that a "
     "pixel looks at, the energy of its gradient, and how much of a condition's influence is near its place", True),
    ("profile.*", "features", "{run}: cosines between concepts from the first layer to the last", False),
    ("spaces", "features", "{run}: cosines within and between categories in parts of the network and outputs", False),
    ("matrices-high|hidden|attention", "features", "{run}: cosines of every pair of concepts at high noise", False),
    ("(matrices|hidden|attention)-.*", "features", "{run}: cosines of every pair of concepts, layer by layer", True),
    ("places", "features", "{run}: what four places of an image look at, from high noise to low", False),
    ("words", "features", "{run}: the influence of each word on two places over noise levels", False),
    ("word_maps", "features", "{run}: where each word is heard", True),
    ("theory_lemma_1", "theory", "Lemma 1 needs a background that factorises", False),
    ("theory_length", "theory", "Local conditional scores learned from pairs draw up to nine objects", False),
    ("theory_relaxation", "theory", "The bound of Lemma 2, and the divergence it bounds", False),
    ("theory_feature_space", "theory", "Claim 2: how far noise and features are from commuting", False),
    ("theory_projective", "theory", "What sums of single-condition scores draw, by their background", False),
    ("theory_machines", "theory", "Score machines: averages over training images, never trained", False),
    ("sim_dynamics", "sim", "The entries of a two-layer linear network along its training", False),
    ("sim_swing_by", "sim", "The loss at the unseen combination over many starts", False),
    ("sim_failure", "sim", "The published step against gradient descent", False),
    ("sim_circles.*", "sim", "A diffusion model on circles: each concept along its training", False),
)
# fmt: on
FIGURE_2 = ("exp1", "exp2", "exp3", "exp2l")
LABELS = {"all": "all labels", "one": "one label", "random": "a random number of labels", "all_but_one": "all but one"}


def main(args: Args, took: Sequence[Time] = ()) -> None:
    """`took`: what the caller did before, for the page's last table."""
    if args.study and not args.study.is_dir():
        raise InputError(f"--study: there is no folder {args.study}; composcope reproduce makes it")
    folders = [args.results, *([args.study / "results"] if args.study else [])]
    study = gathered(gather([SHIPPED]), gather(folders))
    if not study.rows:
        raise InputError(
            f"nothing is measured yet: no rows in {', '.join(map(str, folders))} or with the shipped models"
        )
    scatters = list(filter(None, [scatter_of(study.rows, rule) for rule in K_MAX_RULES]))
    words = "Every dot is a model at a moment of its training (Figure 2, right)"
    found = [Picture("locality", figure, words) for _, figure in scatters] + pictures([*folders, SHIPPED], study)
    alike = [row for row in study.rows if row.setting.get("trained", 3) == 3]
    same = filter(None, [scatter_of(alike, rule) for rule in K_MAX_RULES])
    correlations = [row for row, _ in scatters] + [replace(row, run="1-3 objects") for row, _ in same]
    study = replace(study, rows=[*study.rows, *correlations])
    write_text(args.out / "index.html", page(study, found, [*took, *times(args.study)]))
    print("\n".join(summary(study)))
    print(f"{len(study.rows)} rows -> {args.out / 'index.html'}")


def gather(folders: Iterable[Path]) -> list[Row]:
    """Rows of all files below the folders; of rows with one key the last counts."""
    paths = (path for folder in folders for path in sorted(folder.rglob("*.jsonl")) if path.name != "log.jsonl")
    return list({row.key: row for path in paths for row in read(path)}.values())


def gathered(shipped: Sequence[Row], measured: Sequence[Row]) -> Study:
    """What was measured here takes the place of all that was shipped of the same run: it may be another model."""

    def what(row: Row) -> tuple:
        room = row.claim.partition("/")[0]
        return plain(row.run), "drawn" if room in ("length", "locality") else row.claim

    here = {what(row) for row in measured}
    stays = [row for row in shipped if what(row) not in here]
    return Study([*stays, *measured], expected(), frozenset((row.claim.partition("/")[0], row.run) for row in stays))


def expected() -> list[Expected]:
    """Every run of the study, with the paper's K_max."""
    configs = {run.name: train.config_of(tyro.cli(train.Args, args=run.train)) for run in RUNS}
    return [Expected(name, trained_on(config), in_the_paper(config)[0] or "") for name, config in configs.items()]


def trained_on(config: Config) -> str:
    """ "1-3 objects, list, all labels, patch-local" """
    fewest, most = config.objects
    objects = f"{fewest}-{most} objects" if most > 1 else "1 object"
    return ", ".join([objects, config.conditioner, LABELS[config.labels], *["patch-local"] * (config.net == "local")])


def pictures(folders: Iterable[Path], study: Study) -> list[Picture]:
    """Every PNG in the folders whose name we know, of final weights."""
    found = []
    for path in (path for folder in folders for path in sorted(folder.rglob("*.png"))):
        run, _, snapshot = re.sub(r"-(early|middle|final)-.*", r"/\1", path.parent.name).partition("/")
        known = next((one for one in PICTURES if re.fullmatch(one[0], path.stem)), None)
        room = {"sheet": "length", "heatmaps": "locality", "curves": "locality"}.get(path.stem)
        stale = room and path.is_relative_to(SHIPPED) and (room, run) not in study.shipped  # measured here instead
        if known and snapshot in ("", "final") and not stale:
            _, part, words, folded = known
            folded |= path.stem == "heatmaps" and run not in FIGURE_2
            part = part_of(run, study) if path.stem == "sheet" else part
            found.append(Picture(part, path, words.format(run=run, counts=counts(run, study)), folded))
    return found


def part_of(run: str, study: Study) -> str:
    """The part of the page with the K_max of a run."""
    if run in others(study) or "+" in run:
        return "mended" if "+" in run else "others"
    return "table2" if run in ("random", "drop-one") else "table1"


def counts(run: str, study: Study) -> str:
    means = [f"{edges(row)[0]:.1f}" for row in study.rows if row.claim == "live/found" and row.run == run]
    return f", {', '.join(means)} found there" if means else ""


def times(study: Path | None) -> list[Time]:
    """Minutes of each training that ships, by its log, and of each node of the study that is done."""
    markers = sorted((study / "done").glob("*.json")) if study else []
    done = {marker.stem: json.loads(marker.read_text()) for marker in markers}
    here = [Time(name, said["minutes"], "composcope " + " ".join(said["command"])) for name, said in done.items()]
    logs = [path for path in sorted(SHIPPED.glob("*/log.jsonl")) if f"train {path.parent.name}" not in done]
    return [shipped_training(path) for path in logs] + here


def shipped_training(path: Path) -> Time:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    images = [0, *(line["images"] for line in lines)]
    seconds = sum((now - before) / line["speed"] for before, now, line in zip(images, images[1:], lines, strict=False))
    name = path.parent.name
    return Time(f"train {name} (shipped)", seconds / 60, f"composcope reproduce --preset laptop --only {name}")
