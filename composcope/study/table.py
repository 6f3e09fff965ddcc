"""The study as one table: a run is a Config by its experiment and changes, the figure it serves,
and what is measured on it.

Plan, report, README and docs read this table, beside it the paper's values (paper.py) and the
comparisons (effects.py). A row is found by its coordinates; names are only ever compared whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from composcope.errors import InputError
from composcope.runs.config import EXPERIMENTS, Config, configure
from composcope.runs.model import conditioner_of
from composcope.study.paper import PaperValue, covers, paper_k_max, paper_none_asked

TOLERANCE = 0.1  # of the image's side: the paper's test places are that far apart
STEPS = 12  # of the sampler: samples do not change from there on (LOG.md)
IMAGES_EACH = 48  # for each K
LOCALITY_SAMPLES = 16
EARLIER = ("early", "middle")
BOTH = ("evaluate", "locality")
PLACELESS = ("evaluate", "features")  # of conditions that have no places


@dataclass(frozen=True)
class Intervention:
    """On a trained model at sampling time; `radius` in image sides, where it has one."""

    name: str
    radius: float | None = None


LOCAL = Intervention("local", 1.5 / 8)
GUIDED = Intervention("guided", 1.5 / 8)
GUIDANCE = Intervention("everything")
INTERVENTIONS = (
    LOCAL,
    GUIDED,
    Intervention("local", 1 / 8),
    Intervention("local", 2.2 / 8),
    Intervention("smooth"),
    Intervention("annealed"),
    Intervention("own"),
    Intervention("composed"),
    GUIDANCE,
)


@dataclass(frozen=True)
class Run:
    """One training run of the study and what is measured on it."""

    name: str
    experiment: str
    shows: str  # the figures and tables of the paper it serves
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the experiment's Config
    measures: tuple[str, ...] = BOTH
    snapshots: tuple[str, ...] = ()  # measured beside the final one
    ways: tuple[str, ...] = ()  # of choosing conditions, beside the usual one
    interventions: tuple[Intervention, ...] = ()
    optional: bool = False  # trained when all others are
    # More changes, at one preset's scale.
    by_preset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def changes_at(self, preset: str) -> dict[str, Any]:
        return {**self.changes, **self.by_preset.get(preset, {})}

    def config(self, preset: str = "laptop") -> Config:
        return configure(self.experiment, preset, self.changes_at(preset))

    @property
    def max_K(self) -> int:
        """The most conditions that it is asked for."""
        conditioner = conditioner_of(self.config())
        return conditioner.most if conditioner else 0

    @property
    def paper_k_max(self) -> tuple[PaperValue, ...]:
        return paper_k_max(self.config())

    @property
    def paper_none_asked(self) -> tuple[PaperValue, ...]:
        return paper_none_asked(self.config())


def objects(fewest: int, most: int) -> dict[str, Any]:
    return {"objects": (fewest, most)}


# Figure 1's runs go on four times as long as the others, and at last their rate falls to zero.
# Their early snapshot, after as many images as the others have in the end, is compared with these.
LONG: dict[str, Mapping[str, Any]] = {"laptop": {"images": 256_000, "cool": 64_000}}
# A slot of the list holds a place in a sixth of the images, and a colour says nothing of where:
# both learn late (LOG.md).
LIST: dict[str, Mapping[str, Any]] = {"laptop": {"images": 512_000, "cool": 128_000}}
COLORS: dict[str, Mapping[str, Any]] = {"laptop": {"images": 384_000, "cool": 96_000}}
# Patches of 17 of 16 cells, the paper's control, take 144 GFLOP for one evaluation of the denoiser
# at 64x64: eleven hours for one curve on one core. The laptop has 9 of 8 cells, and the network of
# exp2 on them.
WIDE: dict[str, Mapping[str, Any]] = {
    "smoke": {"radius": 2},
    "laptop": {"grid_size": 8, "radius": 4, "mult": (1, 1), "blocks": 1, "attention": (9,)},
}
# fmt: off
RUNS = (
    Run("exp1",       "exp1",  "Fig. 1, 2, 8, 10; Tables 1, 2", snapshots=EARLIER,
        ways=("random",), interventions=(GUIDANCE,), by_preset=LONG),
    Run("exp2",       "exp2",  "Fig. 1, 2, 10; Tables 1, 2", snapshots=EARLIER,
        interventions=INTERVENTIONS, by_preset=LONG),
    Run("exp3",       "exp3",  "Fig. 1, 2; Table 1 (v3)", snapshots=("first", *EARLIER),
        ways=("random",), interventions=(GUIDANCE,), by_preset=LIST),
    Run("exp3s",      "exp3s", "not in the paper: the list with one map for all slots"),
    Run("random",     "exp1",  "Table 2, random number of labels", {"labels": "random"}),
    Run("drop-one",   "exp1",  "Table 2, all but one label", {"labels": "all_but_one"}),
    Run("exp1-seed1", "exp1",  "the same from another seed", {"seed": 1}),
    Run("exp2-seed1", "exp2",  "the same from another seed", {"seed": 1}),
    Run("exp3-seed1", "exp3",  "the same from another seed", {"seed": 1}),
    Run("exp2l",      "exp2l", "Fig. 1, 2, 10; Table 1", snapshots=EARLIER, by_preset=LONG),
    Run("exp3l",      "exp3l", "Table 1 (v3)", snapshots=("middle",), by_preset=LIST),
    Run("exp2l-wide", "exp2l", "E.3, patches as wide as the image", {"radius": 8},
        by_preset=WIDE),
    Run("exp1-one",   "exp1",  "Fig. 4; Table 1, one object", objects(1, 1)),
    Run("exp1-one-edm2", "exp1", "the same with labels as EDM2 has them",
        {**objects(1, 1), "bilinear": False}, snapshots=("early",)),
    Run("exp1-edm2",  "exp1",  "labels as EDM2 has them", {"bilinear": False}),
    Run("exp2-edm2",  "exp2",  "labels as EDM2 has them", {"bilinear": False}),
    Run("exp2l-one",  "exp2l", "Fig. 4; Table 1, one object", objects(1, 1)),
    Run("exp1-two",   "exp1",  "Fig. 8; Table 1, 1-2 objects", objects(1, 2),
        snapshots=("early",)),
    Run("exp1-four",  "exp1",  "Fig. 8; Table 1, 1-4 objects", objects(1, 4),
        snapshots=("early",)),
    Run("exp1-five",  "exp1",  "Fig. 8; Table 1, 1-5 objects", objects(1, 5),
        snapshots=("early",), by_preset=LONG),
    Run("exp1-six",   "exp1",  "Fig. 8; Table 1, 1-6 objects", objects(1, 6),
        snapshots=("early",)),
    Run("color",      "color", "Fig. 5, 11; Table 1, colour", objects(1, 5), measures=PLACELESS,
        interventions=(GUIDANCE,), by_preset=COLORS),
    Run("color-three","color", "Table 1, colour, 1-3 objects", objects(1, 3), measures=PLACELESS,
        optional=True),
)
# fmt: on
BY_NAME = {run.name: run for run in RUNS}
# Shipped runs that were trained further, in words.
TRAINED_FURTHER = {
    "exp1-longer": "exp1 after 256,000 images, then 128,000 more",
    "exp2-longer": "exp2 after 128,000 images, then more",
    "exp2-penalty": "the same with a penalty on far influence",
    "exp3-longer": "exp3 after 256,000 images, then more",
    "exp3-penalty": "the same with a penalty on far influence",
}
# Those of experiments/penalty: what went on without a penalty, and with one.
PENALTY_RUNS = {"exp2": ("exp2-longer", "exp2-penalty"), "exp3": ("exp3-longer", "exp3-penalty")}
# Exact denoisers of the training images (experiments/score_machines), in words: nothing in them is
# trained.
MACHINES = {
    "local conditional machine": "nothing: averages patches by the labels near them",
    "local machine": "nothing: averages patches, whatever is asked for",
    "ideal machine": "nothing: averages whole images by their labels",
    "local one-label machine": "nothing: averages patches, one label an image",
    "ideal one-label machine": "nothing: averages whole images, one label an image",
}
# exp2 with local conditions under guidance, distilled: composcope distill makes it.
STUDENT = "exp2-student"

LABELS = {
    "all": "all labels",
    "one": "one label",
    "random": "a random number of labels",
    "all_but_one": "all but one",
}


def chosen(names: Sequence[str] | None = None) -> tuple[Run, ...]:
    """The runs of these names; without names all that are not optional."""
    if names is None:
        return tuple(run for run in RUNS if not run.optional)
    runs = ", ".join(BY_NAME)
    for name in names:
        if name not in BY_NAME:
            raise InputError(f"--only: there is no run {name!r} in the study; the runs are {runs}")
    return tuple(BY_NAME[name] for name in names)


def trained_on(config: Config) -> str:
    """In words: "1-3 objects, list, all labels, patch-local"."""
    fewest, most = config.objects
    scenes = f"{fewest}-{most} objects" if most > 1 else "1 object"
    labels = LABELS[config.labels]
    if not config.architecture.bilinear:
        labels += " as in EDM2"
    return ", ".join([scenes, config.conditioner, labels, *patches(config)])


def labelled(config: Config) -> str:
    """What differs from exp1, in words: "one label, patch-local"."""
    usual = EXPERIMENTS["exp1"][0]
    conditioner = [config.conditioner] if config.conditioner != usual else []
    return ", ".join([LABELS[config.labels], *conditioner, *patches(config)])


def patches(config: Config) -> list[str]:
    """What a local net sees, in words; nothing of a global one."""
    seen = "patches as wide as the image" if covers(config) else "patch-local"
    return [seen] if config.net == "local" else []


def network_words(run: str | None, preset: str) -> tuple[str, str, str] | None:
    """What a network sees, how it is built and takes labels, in words; None if never trained."""
    if run not in BY_NAME:
        return None
    config = BY_NAME[run].config(preset)
    size = config.architecture
    patches = f"patches of {2 * size.radius + 1} of {size.grid_size} cells"
    levels = f"levels {size.mult} of width {size.width}"
    labels = "gains linear in labels" if size.bilinear else "labels as in EDM2"
    built = f"{size.blocks} blocks on {levels}, attention {size.attention}"
    return "whole images" if config.net == "global" else patches, built, labels
