"""A text-to-image model, measured: the features of its concepts, then places and words in its
latents.

    measure_text(model, SDXL_PROMPTS, TextSettings(), keep=folder, run="sdxl") -> rows, rows of words, audit"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from composcope.errors import InputError
from composcope.features.prompts import Prompts
from composcope.features.sdxl import SDXL
from composcope.features.text_features import text_features
from composcope.features.text_locality import prompt_locality, word_rows
from composcope.locality import Audit
from composcope.locality.measure import MAPS, maps_of
from composcope.options import File, Prompt
from composcope.results import Row, write_arrays

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class TextSettings:
    """With --sdxl: how a text-to-image model is asked, and looked at."""

    prompt: Prompt = None
    """With --sdxl: only this prompt; where its words act and what places look at, in one image."""
    prompts: File = None
    """JSON with concepts, composites, locality and places; else those that come with the model,
    else the paper's."""
    dtype: Literal["fp32", "bf16", "fp16"] = "fp32"
    """In which precision SDXL's U-Net computes."""
    seeds: int = 10
    """Samples of each prompt of SDXL; of --prompt there is one."""
    steps: int = 15
    """Of SDXL, for features; looked at are the first (high noise), the middle and the last."""
    locality_steps: int = 50
    """Of SDXL, for places and words; influence is measured at ten of them."""
    guidance: float = 5.0
    """Classifier-free guidance of SDXL's samples; activations are those of the denoiser asked for
    the prompt."""
    grid: int = 4
    """SDXL's activations are averaged to at most this many places a side."""

    def __post_init__(self) -> None:
        if self.seeds < 2 or self.steps < 3 or self.locality_steps < 3 or self.grid < 1:
            raise InputError("--seeds is at least 2, --steps and --locality-steps 3, --grid 1")

    def settings(self, asked: Prompts, model: str, seed: int) -> tuple:
        """All that changes what is measured; more images of the same do not."""
        steps = (self.dtype, self.steps, self.locality_steps)
        return (self.prompt or asked, model, *steps, self.guidance, self.grid, seed)


def measure_text(
    model: SDXL, asked: Prompts, how: TextSettings, seed: int, keep: Path, run: str
) -> tuple[list[Row], list[Row], Audit]:
    """Rows of the features of all concepts, unless one prompt is given; rows of what places and
    words do, in one image of that prompt if it is given; and the audit they come from."""
    rows = []
    if how.prompt is None:
        features = (how.seeds, how.steps, how.guidance, how.grid, seed)
        rows = text_features(model, asked, *features, keep / "features", run)
    way = (1 if how.prompt else how.seeds, how.locality_steps, how.guidance, seed)
    places = (asked.places, *way, keep / "places", run)
    prompt = how.prompt or asked.locality
    found = prompt_locality(model, prompt, *places)
    write_arrays(keep / MAPS, found.about, maps_of(found))
    return rows, [*found.rows(), *word_rows(found, prompt)], found
