"""The models that can be asked: what each of them is, in words and numbers, and what is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from composcope.diffusion.sample import noise_levels
from composcope.errors import InputError
from composcope.explore.requests import MOST_CONDITIONS, Described, Picture
from composcope.features.words import Words
from composcope.files import SHIPPED, read_json
from composcope.runs.config import Config
from composcope.runs.model import conditioner_of, load, run_folder
from composcope.scenes.parts import SumOfParts
from composcope.study.paper import covers, paper_k_max

# Interventions in words.
HELPS = {
    "local": "local conditions",
    "guided": "guided local conditions",
    "composed": "composed scores",
}


@dataclass(frozen=True, eq=False)
class Run:
    """A trained run: asked for places or names."""

    name: str
    run: str  # as it was named by whoever asked for it
    drawer: Any
    conditioner: str | None = None  # from outside, as it was named

    @property
    def described(self) -> Described:
        config = self.drawer.config
        return Described(
            name=self.name,
            run=self.run,
            training=training_sentence(config),
            conditioner=self.conditioner,
            size=self.drawer.shape[1:],
            view=config.view,
            trained=None if config.data else config.objects[1],
            weights=self.drawer.fingerprint,
            paper=newest_k_max(config),
            **asking(self.drawer.conditioner),
        )

    def asked(self, picture: Picture) -> tuple[Any, tuple]:
        """The conditioner, and the condition set it is asked for."""
        return self.drawer.conditioner, picture.conditions

    def levels(self, steps: int) -> Tensor:
        return noise_levels(steps)


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A text-to-image pipeline: asked in a sentence, whose words are its conditions. Read when it
    is first asked."""

    name: str
    folder: Path

    @cached_property
    def drawer(self) -> Any:
        from composcope.features import sdxl  # here, because diffusers takes seconds to import

        return sdxl.load(str(self.folder))

    @property
    def described(self) -> Described:
        return Described(
            name=self.name,
            run=self.name,
            training="A small text-to-image model, trained on captions that say what stands where.",
            size=(self.side, self.side),
            noun="word",
            asks="words",
            like="a red cube on the left and a blue sphere on the right",
        )

    @property
    def side(self) -> int:
        """Rows and columns of x, which are not those of its pictures."""
        return read_json(self.folder / "unet" / "config.json", dict[str, Any])["sample_size"]

    def asked(self, picture: Picture) -> tuple[Any, tuple]:
        said = Words(picture.sentence, self.encode)
        if len(said.all) > MOST_CONDITIONS:
            raise InputError(f"sentence: more than {MOST_CONDITIONS} words that carry meaning")
        return said, said.all

    def encode(self, prompts: Sequence[str]) -> Tensor:
        try:
            return self.drawer.encode(prompts)
        except InputError as error:  # more than its encoders read
            raise InputError(f"sentence: {error}") from None

    def levels(self, steps: int) -> Tensor:
        return self.drawer.levels(steps)


Model = Run | Pipeline


def asking(conditioner: SumOfParts | None) -> dict[str, Any]:
    """What a conditioner lets a model be asked, as fields of Described."""
    if conditioner is None:
        return {}
    places = conditioner.has_places
    return {
        "noun": conditioner.noun,
        "asks": "places" if places else "names" if conditioner.names else "nothing",
        "like": conditioner.like,
        "names": conditioner.names,
        "most": min(MOST_CONDITIONS, conditioner.most),
        "grid": conditioner.grid_size,
        "interventions": ("none", *HELPS) if places else ("none", "composed"),
    }


LABELS = {
    "all": "every one of them labelled",
    "one": "only one of them labelled",
    "random": "a random number of them labelled",
    "all_but_one": "all but one of them labelled",
}


def training_sentence(config: Config) -> str:
    """How a model came to be, in a sentence."""
    teacher = config.teacher
    if teacher:
        by = HELPS.get(teacher.intervention, f"the intervention {teacher.intervention}")
        return f"Distilled from {teacher.run} with {by}; it saw no images."
    if config.data:
        return "Trained on images from a folder."
    most = config.objects[1]
    scenes = f"{config.objects[0]} to {most} objects" if most > 1 else "single objects"
    labelled = LABELS[config.labels] if most > 1 else "each labelled"
    words = f"Trained on {scenes}, {labelled}"
    if (conditioner := conditioner_of(config)) and conditioner.form:
        words += f" {conditioner.form}"
    if config.net == "local":
        words += "; the network sees patches" + (" as wide as the image" if covers(config) else "")
    return f"{words}."


def newest_k_max(config: Config) -> int | None:
    """The paper's K_max for such a model, in its newest version with one; it has no students."""
    values = () if config.teacher else paper_k_max(config)
    newest = max(values, key=lambda value: value.version, default=None)
    return newest.low if newest else None


def shipped() -> list[str]:
    """The names of the models that come with the package: runs, then pipelines."""
    runs = sorted(path.parent.name for path in SHIPPED.glob("*/config.json"))
    return runs + sorted(path.parent.name for path in SHIPPED.glob("*/model_index.json"))


def open_model(run: str, conditioner: str | None = None) -> Model:
    """A run folder, a shipped model by its name, or a shipped pipeline.

    conditioner: of runs that were trained with one from outside; others have their own."""
    if (SHIPPED / run / "model_index.json").is_file():
        return Pipeline(run, SHIPPED / run)
    folder = run_folder(run)
    foreign = ":" in Config.load(folder / "config.json").conditioner
    named = conditioner if foreign else None
    return Run(folder.resolve().name, run, load(run, conditioner=named), named)
