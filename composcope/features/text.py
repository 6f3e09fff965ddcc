"""A text-to-image model, measured: features of its concepts, then places and words in its latents.

measure_text(model, SDXL_PROMPTS, TextSettings(), keep=folder, run="sdxl") -> rows, rows of words, audit"""

from pathlib import Path

from composcope.features.prompts import Prompts, TextSettings
from composcope.features.sdxl import SDXL
from composcope.features.text_features import text_features
from composcope.features.text_locality import prompt_locality, word_rows
from composcope.locality import Audit
from composcope.locality.measure import MAPS, maps_of
from composcope.results import Row, write_arrays


def measure_text(
    model: SDXL, asked: Prompts, how: TextSettings, seed: int, keep: Path, run: str
) -> tuple[list[Row], list[Row], Audit]:
    """Rows of the features of all concepts, unless one prompt is given; rows of what places and
    words do, in one image of that prompt if it is given; and the audit they come from."""
    rows = []
    if how.prompt is None:
        rows = text_features(model, asked, how, seed, keep / "features", run)
    found = prompt_locality(model, asked, how, seed, keep / "places", run)
    write_arrays(keep / MAPS, found.about, maps_of(found))
    return rows, [*found.rows(), *word_rows(found, how.prompt or asked.locality)], found
