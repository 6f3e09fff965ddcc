"""`composcope features`: are concepts disentangled in a learned basis? Runs and SDXL."""

import hashlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import tyro

from composcope.errors import InputError
from composcope.features import features, sdxl
from composcope.features.measure import GROUPS, LOOKED_AT, MATRICES
from composcope.features.prompts import PAPER_CONCEPTS, SDXL_PROMPTS, Prompts, read_prompts
from composcope.features.text_features import text_features
from composcope.features.text_locality import prompt_locality, word_rows
from composcope.files import write_png
from composcope.locality import Audit
from composcope.locality.measure import MAPS, maps_of
from composcope.report import features as figures
from composcope.report.locality import heatmaps
from composcope.results import Row, add_rows, check_out, jsonl, where
from composcope.results.arrays import read_arrays, write_arrays
from composcope.runs import load
from composcope.runs.model import own_device, usable

OVERVIEW: tuple[str, ...] = ("down", "mid", "up", "latent", "pixel")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Args:
    """composcope features color

    Cosines between the mean activations of concepts (equation 3), layer by layer, with intervals:
    the conditions of a trained model, or prompts of SDXL, for which the words' influence on places
    is measured as well. The small text-conditioned model that comes with composcope, one prompt and
    one image of it, and SDXL:
    composcope features --sdxl text_control
    composcope features --sdxl text_control --prompt "a red cube on the left"
    composcope features --sdxl stabilityai/stable-diffusion-xl-base-1.0 --device cuda --dtype bf16
    What is measured is kept a prompt and a seed at a time: the same command goes on where it was
    stopped."""

    run: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")] = None
    """A shipped model by name, or a run folder."""
    sdxl: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = None
    """In place of a run: a diffusers SDXL pipeline, by folder, by name on the Hub, or text_control.
    """
    prompt: Annotated[str | None, tyro.conf.arg(metavar="TEXT")] = None
    """With --sdxl: only this prompt; where its words act and what places look at, in one image."""
    prompts: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """JSON with concepts, composites, locality and places; else those that come with the model,
    else the paper's."""
    device: str = field(default_factory=own_device)
    """cpu or cuda."""
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
    num: int = 100
    """Samples of each condition of a run."""
    snapshot: str = "final"
    """early, middle or final weights of a run."""
    seed: int = 0
    """Of the noise; sample i has seed + i, the same for all concepts."""
    out: Path = Path("results/features.jsonl")
    """Where the rows go; means and pictures go into a folder beside it."""
    json: bool = False
    """Print the rows as JSON lines."""


def main(args: Args) -> None:
    check_out(args.out)
    if (args.run is None) == (args.sdxl is None):
        raise InputError("give either a RUN, or --sdxl MODEL")
    if args.prompt is not None and args.sdxl is None:
        raise InputError("--prompt is asked of a text-to-image model: give --sdxl MODEL as well")
    if args.seeds < 2 or args.steps < 3 or args.locality_steps < 3 or args.grid < 1:
        raise InputError("--seeds is at least 2, --steps and --locality-steps 3, --grid 1")
    # Attention to padding is so close to nothing that it slows a processor five times.
    torch.set_flush_denormal(True)
    try:
        rows, folder, text = of_run(args) if args.run is not None else of_text(args)
    finally:
        torch.set_flush_denormal(False)
    add_rows(args.out, rows)
    words = sys.stderr if args.json else sys.stdout
    print(text, file=words)
    print(f"rows: {args.out}   means and pictures: {folder}", file=words)
    print(f"next: composcope report --results {args.out.parent}", file=words)
    if args.json:
        sys.stdout.write(jsonl(rows))


Product = tuple[list[Row], Path, str]  # rows, where means and pictures are, and the table to print


def settings_digest(*what: Any) -> str:
    """Eight characters that change with what they are made of: the folder of these settings."""
    return hashlib.sha256(repr(what).encode()).hexdigest()[:8]


def of_run(args: Args) -> Product:
    model = load(str(args.run), args.snapshot, args.device)
    own = settings_digest(model.fingerprint, args.num, args.seed)
    folder = args.out.with_suffix("") / f"{model.name}-{args.snapshot}-{own}"
    groups = min(GROUPS, args.num)
    rows = features(model, args.num, args.seed, folder, groups, args.device)
    kept = read_arrays(folder / MATRICES)
    for level in LOOKED_AT:
        shown = figures.level_matrices(kept, level)
        title = f"{model.name}; {level} noise"
        picture = figures.matrices(shown, list(kept["concepts"]), title)
        write_png(folder / f"matrices-{level}.png", picture)
    write_png(folder / "profile.png", figures.profile(rows))
    return rows, folder, figures.features_table(rows)


def of_text(args: Args) -> Product:
    """A text-to-image model: features of its concepts, then places and words in its latents."""
    source = Path(sdxl.folder_of(str(args.sdxl)))
    asked = chosen_prompts(args, source)
    model = sdxl.load(str(args.sdxl), usable(args.device), DTYPES[args.dtype])
    settings = (args.dtype, args.steps, args.locality_steps, args.guidance, args.grid, args.seed)
    own = settings_digest(args.prompt or asked, str(args.sdxl), *settings)
    folder = args.out.with_suffix("") / f"{source.name}-{own}"
    rows: list[Row] = []
    if args.prompt is None:
        rows = text_features(
            model,
            asked,
            args.seeds,
            args.steps,
            args.guidance,
            args.grid,
            args.seed,
            folder / "features",
            source.name,
        )
        draw_features(folder, rows)
    prompt = args.prompt or asked.locality
    found = prompt_locality(
        model,
        prompt,
        asked.places,
        args.seeds if args.prompt is None else 1,
        args.locality_steps,
        args.guidance,
        args.seed,
        folder / "places",
        source.name,
    )
    words = [*found.rows(), *word_rows(found, prompt)]
    draw_words(folder, found, words)
    text = "\n".join([found.table(), *figures.words_found(words)])
    if rows:
        text = f"{figures.features_table(rows)}\n\n{prompt}\n{text}"
    return [*rows, *words], folder, text


def chosen_prompts(args: Args, source: Path) -> Prompts:
    if args.prompts is not None:
        return read_prompts(args.prompts)
    shipped = source / "prompts.json"
    return read_prompts(shipped) if shipped.is_file() else SDXL_PROMPTS


def draw_features(folder: Path, rows: list[Row]) -> None:
    """Matrices and profiles of hidden states and of attention maps; parts of the U-Net beside
    output spaces."""
    for maps in ("hidden", "attention"):
        kept = read_arrays(folder / "features" / maps / MATRICES)
        concepts = list(kept["concepts"])
        shown = figures.level_matrices(kept, "high")
        title = f"{maps} at high noise"
        write_png(folder / f"{maps}-layers.png", figures.matrices(shown, concepts, title))
        chosen = [concepts.index(name) for name in PAPER_CONCEPTS if name in concepts]
        chosen = chosen or list(range(len(concepts)))
        overview = [name for name in OVERVIEW if name in shown]
        few = {name: shown[name][np.ix_(chosen, chosen)] for name in overview}
        write_png(
            folder / f"{maps}.png", figures.matrices(few, [concepts[i] for i in chosen], title)
        )
        own = where(rows, maps=maps)
        write_png(folder / f"profile-{maps}.png", figures.profile(own))
    write_png(folder / "spaces.png", figures.spaces(where(rows, maps="hidden")))


def draw_words(folder: Path, found: Audit, rows: list[Row]) -> None:
    write_arrays(folder / MAPS, found.about, maps_of(found))
    write_png(folder / "places.png", heatmaps(read_arrays(folder / MAPS)))
    write_png(folder / "words.png", figures.words_over_time(rows))
