"""A Config and a folder make a run; the same again goes on, and a finished run is left alone.

folder: config.json, log.jsonl, model.safetensors (the averaged weights),
        pixels.safetensors (constants of the data), snapshots/ averages/ checkpoints/ samples/
        tensorboard/"""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from PIL.Image import Image
from torch import Tensor, nn

from composcope.diffusion.ema import Profile, Weights, gamma_of, reconstruct
from composcope.diffusion.lesson import Denoising, Lesson
from composcope.diffusion.loss import Loss
from composcope.diffusion.penalty import Penalty
from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import noise_levels, sample
from composcope.diffusion.train import by_the_first, parts_of_batch, processes, train, use
from composcope.errors import InputError
from composcope.files import SHIPPED, clear, locked, write_png, write_text
from composcope.nets.layers import renormalize
from composcope.options import line
from composcope.progress import console
from composcope.runs.config import Config, difference
from composcope.runs.data import Images, complete_config, examples_of, images_of, pixel_constants
from composcope.runs.model import (
    Model,
    conditioner_of,
    load,
    network,
    own_device,
    run_folder,
    weights_path,
)
from composcope.runs.workers import render_ahead
from composcope.scenes.parts import SumOfParts
from composcope.tensors import read_tensors, save_tensors

SHEET_K = (0, 1, 2, 3, 5, 7, 9)  # how much the sheets of a run ask for, a row each
SHEET_SEEDS = range(4)

Sheet = Callable[..., Image]  # of images, asked places and `columns`: report.sheets.sheet


def start(
    config: Config, folder: str | Path, sheet: Sheet | None = None, workers: int | None = None
) -> None:
    """Train `config` in `folder`, or go on; `sheet` draws the samples of the run as it goes.

    `workers` processes render images ahead; None: as many as this process has cores to itself on a
    machine with GPUs, and none elsewhere, where a thread does it."""
    config = complete_config(config)
    folder = Path(folder)
    device = own_device()
    if device.startswith("cuda"):
        torch.cuda.set_device(device)  # not run here
    cores = config.threads or own_cores()
    use(cores, cores)
    if workers is None:
        workers = cores if device.startswith("cuda") else 0
    parts_of_batch(config.recipe)
    with processes() as rank, ExitStack() as claims:

        def claim() -> bool:
            claims.enter_context(locked(folder))
            return is_finished(config, folder)

        # Build all that can be refused before anything is written.
        if by_the_first(claim):
            return
        images = images_of(config)
        # What cannot be is refused before images are measured: networks, penalties, first weights.
        conditioner = conditioner_of(config)
        with torch.device("meta"):
            net = network(config, conditioner)
        check_penalty(config, conditioner)
        if config.init:
            check_init(config.init, net)
        pixels, sigma_data = by_the_first(lambda: constants(config, images, folder))
        model = Model(config, pixels, sigma_data)
        if config.init:
            take_weights(model, config.init)
        lesson = Denoising(config.recipe, penalty_of(model))
        if rank == 0:
            open_run(model, folder)
            if config.recipe.bf16 and device == "cpu" and not computes_bf16():
                console().print("this processor is slow with bf16: train with --bf16 False")
        with render_ahead(config, images, workers) as ahead:
            fit(model, lesson, examples_of(model, ahead), folder, sheet, device, max(workers, 1))


def computes_bf16() -> bool:
    """Whether this processor has instructions for it; one without took eighty times as long."""
    known = torch.backends.mkldnn.is_available()
    return not known or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def open_run(model: Model, folder: Path) -> None:
    """From here on the folder is a run: the constants, then the configuration they belong to."""
    clear(folder)
    sigma_data = model.denoiser.sigma_data.clone()
    constants = model.pixels.state_dict() | {"sigma_data": sigma_data}
    save_tensors(folder / "pixels.safetensors", constants)
    model.config.save(folder / "config.json")


def fit(
    model: Model,
    lesson: Lesson,
    make: Callable[[int, int], Any],
    folder: Path,
    sheet: Sheet | None,
    device: str,
    makers: int = 1,
) -> None:
    """Train the model of a run, with its weights, snapshots and samples put into its folder."""

    def keep(name: str, weights: Weights) -> None:
        save_tensors(weights_path(folder, name), model.state_dict() | dict(weights))

    def draw(step: int, weights: Weights) -> None:
        path = folder / "samples" / f"{step:09d}.png"
        if sheet and not path.exists():
            write_png(path, samples(model, weights, sheet))

    recipe = model.config.recipe
    loss = Loss(model.denoiser)
    train(model, loss, make, recipe, folder, renormalize, keep, draw, device, makers, lesson)


def check_penalty(config: Config, conditioner: SumOfParts | None) -> None:
    """An InputError where what a recipe penalises cannot be."""
    placed = conditioner is not None and conditioner.has_places
    if config.recipe.penalty and (config.net == "local" or not placed):
        raise InputError(
            "--penalty is on what conditions do far from their places: it needs a global network "
            "and conditions with places, such as those of exp2 and exp3"
        )


def penalty_of(model: Model) -> Penalty | None:
    """What a recipe penalises."""
    recipe = model.config.recipe
    if not recipe.penalty:
        return None
    return Penalty(recipe.penalty, recipe.penalty_radius, model.conditioner)


def own_cores() -> int:
    """The cores of this machine that are this process's, where torchrun started several."""
    allowed = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    return max(allowed // int(os.environ.get("LOCAL_WORLD_SIZE", 1)), 1)


def check_init(run: str, net: nn.Module) -> None:
    """An InputError where the weights of another run are not of this network."""
    theirs = {name: tensor.shape for name, tensor in load(run).denoiser.net.state_dict().items()}
    own = {name: tensor.shape for name, tensor in net.state_dict().items()}
    for name in own | theirs:
        if own.get(name) != theirs.get(name):
            raise InputError(
                f"--init: {run} has another network than this run ({name}); "
                "give it the same architecture"
            )


def take_weights(model: Model, run: str) -> None:
    """Give `model` the weights of another run; what was measured of its own data stays."""
    own = model.state_dict()
    measured = "pixels.centre", "pixels.scale", "denoiser.sigma_data"
    model.load_state_dict(load(run).state_dict() | {name: own[name] for name in measured})


def constants(config: Config, images: Images, folder: Path) -> tuple[Pixels, float]:
    """The pixel constants and sigma_data: measured when the run begins, read from then on.

    They belong to the configuration beside them; without one they are another command's."""
    path = folder / "pixels.safetensors"
    if not path.exists() or not (folder / "config.json").exists():
        return pixel_constants(config, images)
    try:
        kept = read_tensors(path, finite=True)
        return Pixels(kept["centre"], float(kept["scale"])), float(kept["sigma_data"])
    except (InputError, KeyError, RuntimeError) as error:
        advice = "remove it and it is measured again, the same"
        raise InputError(f"{path} is damaged ({error}); {advice}") from None


def is_finished(config: Config, folder: Path) -> bool:
    """Whether the folder holds this configuration's model; an InputError if another run's."""
    path = folder / "config.json"
    names = {file.name for file in folder.iterdir() if not file.name.startswith(".")}
    others = names - {"pixels.safetensors"}
    if others and not path.exists():
        raise InputError(
            f"{folder} holds {min(others)} and no config.json: not a run; "
            "choose another folder with --out"
        )
    if path.exists() and (differs := difference(Config.load(path), config)):
        advice = "choose another folder with --out"
        raise InputError(f"{folder} holds another run ({differs}); {advice}")
    if not (folder / "model.safetensors").exists():
        return False
    print(f"composcope: {folder} is finished; nothing to do", file=sys.stderr)
    return True


def samples(model: Model, weights: Weights, sheet: Sheet) -> Image:
    """What the model draws with these weights, a row for each K of SHEET_K, from the same seeds."""
    conditioner = model.conditioner
    columns = len(SHEET_SEEDS)
    asked: list[tuple] = [()] * len(SHEET_K) * columns
    shown = asked
    cond = None
    if conditioner:
        rows = [conditioner.ask(min(K, conditioner.most), columns) for K in SHEET_K]
        asked = [one for row in rows for one in row]
        cond = conditioner(asked)
        shown = asked if conditioner.has_places else shown

    def averaged(x: Tensor, sigma: Tensor, cond: Tensor | None) -> Tensor:
        return torch.func.functional_call(model, dict(weights), (x, sigma, cond))

    device = next(iter(weights.values())).device
    seeds = [*SHEET_SEEDS] * len(SHEET_K)
    x = sample(averaged, seeds, model.shape, cond, noise_levels(16), device=device)
    return sheet(model.pixels.decode(x), shown, columns=columns)


def reaverage(run: str | Path, sigma_rel: float) -> Model:
    """The finished model of a run, averaged at another width from what was kept on the way."""
    folder = run_folder(run)
    config, model = Config.load(folder / "config.json"), load(folder)
    kept = []
    for path in sorted((folder / "averages").glob("*.safetensors")):
        tensors = read_tensors(path)
        for width in config.recipe.sigma_rels:
            weights = {name: tensors[f"{width}/{name}"] for name, _ in model.named_parameters()}
            kept.append((Profile(int(path.stem), gamma_of(width)), weights))
    if not kept:
        raise InputError(f"{folder} has no averages to make another one from")
    wanted = Profile(config.recipe.steps, gamma_of(sigma_rel))
    model.load_state_dict(reconstruct(kept, wanted), strict=False)
    return model


def check_ship(name: str | None, conditioner: str) -> None:
    """An InputError, before anything is trained, if no such run can ship under this name."""
    if name and (Path(name).name != name or (SHIPPED / name).exists()):
        raise InputError(f"--ship {name}: no plain name, or there is a model of this name")
    if name and ":" in conditioner:
        raise InputError(f"--ship {name}: its conditioner {conditioner} would not ship with it")


def tell_run(what: str, folder: Path, name: str | None, conditioner: str) -> None:
    """Where a finished run is, and as what it ships; what it draws can be counted or looked at."""
    if name:
        print(f"shipped as {ship(folder, name)}")
    countable = getattr(conditioner_of(Config.load(folder / "config.json")), "countable", False)
    after = "evaluate" if countable else "sample"
    print(f"the {what} is in {folder}   next: {line(conditioner, after, folder)}")


def ship(run: str | Path, name: str, snapshots: Sequence[str] = ("final",)) -> Path:
    """Add a run to the shipped models: weights in half precision, configuration, 200 lines of log
    at most."""
    folder, target = run_folder(run), SHIPPED / name
    Config.load(folder / "config.json").save(target / "config.json")
    log = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    write_text(target / "log.jsonl", "".join(log[:: -(-len(log) // 200)]))
    for snapshot in snapshots:
        model = load(folder, snapshot)
        halved = {key: weight.half() for key, weight in model.named_parameters() if weight.ndim}
        save_tensors(weights_path(target, snapshot), model.state_dict() | halved)
    return target
