"""`composcope features`: are concepts disentangled in a learned basis? Our colour model, and SDXL."""

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import tyro

from composcope.diffusion.sample import noise, noise_levels
from composcope.errors import InputError
from composcope.features import measure, prompts, sdxl, text_locality
from composcope.features.capture import first_input, pooled
from composcope.features.measure import Levels, Probe
from composcope.features.probe import Measured
from composcope.features.profile import NOTHING, Study, composites
from composcope.features.words import Words
from composcope.files import locked, write_png
from composcope.locality import influence, pixel_gradient
from composcope.locality.profile import centred_square
from composcope.report import features as figures
from composcope.results import Row, add, jsonl, known, read, writable
from composcope.runs import load
from composcope.runs.model import name_of, usable
from composcope.scenes import COLORS, PAPER_LOCATIONS

GROUPS = 10  # of samples, for the intervals of a run
Means = Mapping[str, torch.Tensor]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
RUN_STEPS = {"high": 3, "mid": 7, "low": 11}  # of 15: sigma 22, 2.5 and 0.10
OVERVIEW = ("down@high", "mid@high", "up@high")
PAPER = {  # version 3, figures 4 and 5; it prints no numbers
    "ratio": "arch-shaped over layers, highest near the bottleneck",
    "gap": "larger in features than in latents and pixels",
    "two_places": "nearly identical curves",
}


@dataclass(frozen=True)
class Args:
    """composcope features color

    Cosines between the mean activations of concepts (equation 3), layer by layer, with intervals: the colours of a
    trained model, or prompts of SDXL, for which the words' influence on places is measured as well:
    composcope features --sdxl text_control        the small text-conditioned model that comes with composcope
    composcope features --sdxl stabilityai/stable-diffusion-xl-base-1.0 --device cuda --dtype bf16
    What is measured is kept a prompt and a seed at a time: the same command goes on where it was stopped.
    """

    run: Annotated[str | None, tyro.conf.Positional] = None
    """A shipped model by name, or a run folder."""
    sdxl: str | None = None
    """In place of a run: a diffusers SDXL pipeline, by folder, by name on the Hub, or text_control."""
    prompts: Path | None = None
    """JSON with concepts, composites, locality and places; else those that come with the model, else the paper's."""
    device: str = "cpu"
    """cpu or cuda."""
    dtype: Literal["fp32", "bf16", "fp16"] = "fp32"
    """In which precision SDXL's U-Net computes."""
    seeds: int = 10
    """Samples of each prompt of SDXL."""
    steps: int = 15
    """Of SDXL, for features; looked at are the first (high noise), the middle and the last."""
    locality_steps: int = 50
    """Of SDXL, for places and words; influence is measured at ten of them."""
    guidance: float = 5.0
    """Classifier-free guidance of SDXL's samples; activations are those of the denoiser asked for the prompt."""
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
    writable(args.out)
    if (args.run is None) == (args.sdxl is None):
        raise InputError("give either a RUN, or --sdxl MODEL")
    if args.seeds < 2 or args.num < GROUPS or args.steps < 3 or args.locality_steps < 3 or args.grid < 1:
        raise InputError(f"--seeds is at least 2, --num {GROUPS}, --steps and --locality-steps 3, --grid 1")
    torch.set_flush_denormal(True)  # attention to padding is so close to nothing that it slows a processor five times
    try:
        rows = of_run(args) if args.run is not None else of_sdxl(args)
    finally:
        torch.set_flush_denormal(False)
    add(args.out, rows)
    print(f"rows: {args.out}   means and pictures: {args.out.with_suffix('')}", file=sys.stderr)
    if args.json:
        sys.stdout.write(jsonl(rows))


def digest(*what: Any) -> str:
    """Eight characters that change with what they are made of; so other settings go to another folder."""
    return hashlib.sha256(repr(what).encode()).hexdigest()[:8]


def rows_of(found: Sequence[Measured], run: str, setting: dict[str, Any], seed: int) -> list[Row]:
    """The paper's findings stand beside the rows of text-to-image models, the only ones it has them for."""
    paper = PAPER if "guidance" in setting else {}
    rows = []
    for m in found:  # of one category, or of concepts that are all in one composite, some means do not exist
        value, coordinates = m.value if isinstance(m.value, str) else known(m.value), setting | m.setting
        ends = known(m.low), known(m.high)
        rows.append(Row(f"features/{m.claim}", run, value, coordinates, seed, *ends, paper.get(m.claim)))
    return rows


def of_run(args: Args) -> list[Row]:
    """Our own model: its colours (or locations), at every layer that the condition modulates."""
    name = name_of(args.run)
    model = load(str(args.run), args.snapshot, args.device)
    if model.conditioner is None:
        raise InputError(f"{args.run} was trained with nothing asked of its images; there are no concepts to compare")
    if model.config.net == "local":
        raise InputError(f"{args.run} is patch-local: its layers see patches, so there is no activation of an image")
    asked = {str(c): (c,) for c in (COLORS if model.config.conditioner == "color" else PAPER_LOCATIONS)}
    folder = args.out.with_suffix("") / f"{name}-{args.snapshot}-{digest(model.fingerprint, args.num, args.seed)}"
    layers, size = measure.modulated_layers(model), args.num // GROUPS
    levels = Levels(noise_levels(15), RUN_STEPS)

    def make(condition_set: tuple, group: int) -> Means:
        x = noise(range(args.seed + group * size, args.seed + (group + 1) * size), model.shape) * levels.sigmas[0]
        cond = model.conditioner([condition_set] * size).to(args.device)
        probes = [Probe(layers, first_input)]
        return measure.means(model, model, probes, x.to(args.device), cond, levels, {"pixel": keep}, model.resolution)

    everything = {NOTHING: (), **asked}
    todo = {(n, g): partial(make, c, g) for n, c in everything.items() for g in range(GROUPS)}
    trial = torch.zeros(size, *model.shape, device=args.device), torch.ones(size, device=args.device), None
    with locked(folder):
        measure.make_all(folder, todo, f"{name}: conditions and groups", lambda: model(*trial), 15 + len(RUN_STEPS))
    study = Study(folder, {n: (n, "") for n in asked}, GROUPS)
    found, matrices = study.over_layers(layers, list(RUN_STEPS), coder, ["pixel"])
    setting = {"snapshot": args.snapshot, "weights": model.fingerprint, "num": size * GROUPS}
    rows = rows_of(found, name, setting, args.seed)
    best = k_max(args, name)
    title = f"{name}; K_max {best.value} [{best.low}, {best.high}]" if best else name
    for level in RUN_STEPS:
        own = {key.partition("@")[0]: m for key, m in matrices.items() if key.endswith((f"@{level}", "pixel"))}
        write_png(folder / f"matrices-{level}.png", figures.matrices(own, list(asked), f"{title}; {level} noise"))
    write_png(folder / "profile.png", figures.profile(rows))
    return rows + ([Row("features/k_max", name, best.value, best.setting, None, best.low, best.high)] if best else [])


def keep(x: torch.Tensor) -> torch.Tensor:
    return x


def coder(layer: str) -> str:
    return "encoder" if ".enc." in layer else "decoder"


def k_max(args: Args, name: str) -> Row | None:
    """Where `composcope evaluate` has left it."""
    found = [row for row in read(args.out.with_name("evaluate.jsonl")) if row.claim == "length/k_max_paper"]
    return next((r for r in found if (r.run, r.setting.get("snapshot")) == (name, args.snapshot)), None)


def of_sdxl(args: Args) -> list[Row]:
    """A text-to-image model: features of its concepts, then places and words in its latents."""
    source = Path(sdxl.folder_of(str(args.sdxl)))
    own = args.prompts or (source / "prompts.json" if (source / "prompts.json").is_file() else None)
    asked = prompts.read(own) if own else prompts.SDXL_PROMPTS
    model = sdxl.load(str(args.sdxl), usable(args.device), DTYPES[args.dtype])
    settings = (args.dtype, args.steps, args.locality_steps, args.guidance, args.grid, args.seed)
    folder = args.out.with_suffix("") / f"{source.name}-{digest(asked, str(args.sdxl), *settings)}"
    common = {"seeds": args.seeds, "guidance": args.guidance, "study": digest(asked, *settings)}
    with locked(folder):
        rows = rows_of(features_of(args, model, asked, folder), source.name, common, args.seed)
        draw_features(folder, rows)
        found = places_of(args, model, asked, folder)
    return rows + rows_of(found, source.name, common, args.seed)


def features_of(args: Args, model: sdxl.SDXL, asked: prompts.Prompts, folder: Path) -> list[Measured]:
    blocks = model.transformer_blocks
    attns = tuple(f"{block}.attn2" for block in blocks)
    levels = Levels(model.levels(args.steps), {"high": 0, "mid": args.steps // 2, "low": args.steps - 1})
    word = {c.name: c.word for c in asked.concepts}
    texts = {NOTHING: ("", {"": ""})}
    texts |= {c.name: (c.prompt, {c.name: c.word}) for c in asked.concepts}
    texts |= {c.name: (c.prompt, {part: word[part] for part in c.parts}) for c in asked.composites}
    outputs: dict[str, Callable] = {"latent": keep, "pixel": lambda x: pooled(pictures(model, x), 64)}

    def make(name: str, seed: int) -> Means:
        prompt, tokens = texts[name]
        probes = [Probe(attns, sdxl.attention_to(model.token(prompt, w)), f"attn/{p}/") for p, w in tokens.items()]
        x, cond = model.start([seed], args.steps), model.encode([prompt])
        every = [Probe(blocks), *probes]
        return measure.means(model, model.unet, every, x, cond, levels, outputs, args.grid, args.guidance)

    todo = {(n, s): partial(make, n, args.seed + s) for n in texts for s in range(args.seeds)}
    calls = args.steps * (1 if args.guidance == 1 else 2) + len(levels.steps)
    measure.make_all(folder / "features", todo, "prompts and seeds", partial(trial, model), calls)
    categories = [c.category for c in asked.concepts]
    whole_ = {n: (n, "") for n in texts if n != NOTHING}
    tokens = {c.name: (c.name, f"attn/{c.name}/") for c in asked.concepts}
    tokens |= {f"{c.name}: {p}": (c.name, f"attn/{p}/") for c in asked.composites for p in c.parts}
    hidden = Study(folder / "features", whole_, args.seeds, categories)
    attention = Study(folder / "features", tokens, args.seeds, categories, "attn//")
    found: list[Measured] = []
    for study, layers, spaces in ((hidden, blocks, ["latent", "pixel"]), (attention, attns, [])):
        some, matrices = study.over_layers(layers, list(levels.steps), sdxl.part_of, spaces)
        of_maps = study is attention
        mid = torch.stack([study.cosines(f"{layer}@high") for layer in layers if sdxl.part_of(layer) == "mid"])
        some += composites(study, mid.mean(0), asked, of_maps)
        found += [replace(m, setting=m.setting | {"maps": "attention"}) if of_maps else m for m in some]
        draw_matrices(folder, study, matrices, "attention" if of_maps else "hidden")
    return found


def trial(model: sdxl.SDXL) -> torch.Tensor:
    return model(model.start([0], 3), torch.ones(1, device=model.device), None)


def pictures(model: sdxl.SDXL, x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(model.decode(x)).permute(0, 3, 1, 2) / 127.5 - 1


def places_of(args: Args, model: sdxl.SDXL, asked: prompts.Prompts, folder: Path) -> list[Measured]:
    said, steps = Words(asked.locality, model.encode), args.locality_steps
    levels = Levels(model.levels(steps), {"high": 0, "mid": steps // 2, "low": steps - 1})
    along = text_locality.Walk(steps, levels, asked.places, model.shape[1], args.guidance)

    def make(seed: int) -> Means:
        return text_locality.maps(model, said, seed, along, pixel_gradient, influence)

    todo = {("places", s): partial(make, args.seed + s) for s in range(args.seeds)}
    calls = along.calls(len(said.all), model.shape[0])
    measure.make_all(folder / "places", todo, "places and words", partial(trial, model), calls)
    stored = [measure.file_of(folder / "places", *key) for key in todo]
    gradients, influences = (
        np.stack([measure.read(path, key).numpy() for path in stored]) for key in ("gradients", "influences")
    )
    image = measure.read(stored[0], "image").numpy().astype(np.uint8)
    heard = text_locality.heard(influences, said, along)
    write_png(folder / "places.png", figures.gradients(image, gradients.mean(0), list(levels.steps), along.pixels))
    curves = [m for m in heard if m.claim == "influence"]
    write_png(folder / "words.png", figures.words_over_time(rows_of(curves, "", {}, args.seed)))
    chosen = [along.times.index(step) for step in levels.steps.values()]
    texts, sigmas = [word.text for word in said.all], [along.sigmas[i] for i in chosen]
    write_png(folder / "word_maps.png", figures.word_maps(influences.mean(0)[chosen], texts, sigmas))
    squares = text_locality.squares(gradients, along, centred_square)
    return [*squares, *heard, *text_locality.meant(influences, said, along)]


def draw_matrices(folder: Path, study: Study, matrices: Mapping[str, np.ndarray], what: str) -> None:
    """All layers at high noise; and, for few concepts, the parts of the U-Net beside the output spaces."""
    names = list(study.entries)
    layers = {key.partition("@")[0]: m for key, m in matrices.items() if key.endswith("@high") and "." in key}
    write_png(folder / f"{what}-layers.png", figures.matrices(layers, names, f"{what} at high noise"))
    chosen = [names.index(n) for n in prompts.PAPER_CONCEPTS if n in names] or list(range(len(study.categories or ())))
    spaces = {key.partition("@")[0]: m for key, m in matrices.items() if key in (*OVERVIEW, "latent", "pixel")}
    few = {name: m[np.ix_(chosen, chosen)] for name, m in spaces.items()}
    write_png(folder / f"{what}.png", figures.matrices(few, [names[i] for i in chosen], f"{what} at high noise"))


def draw_features(folder: Path, rows: Sequence[Row]) -> None:
    hidden = [row for row in rows if "maps" not in row.setting]
    write_png(folder / "profile.png", figures.profile(hidden))
    write_png(folder / "profile-attention.png", figures.profile([row for row in rows if "maps" in row.setting]))
    overview = [row for row in hidden if f"{row.setting.get('layer')}@{row.setting.get('level')}" in OVERVIEW]
    outputs = [row for row in hidden if row.setting.get("part") == "output"]
    write_png(folder / "spaces.png", figures.spaces([*overview, *outputs]))
