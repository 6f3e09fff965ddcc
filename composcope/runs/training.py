"""A Config and a folder make a run; the same again goes on from where it stopped, and a finished run is left alone.

folder: config.json, log.jsonl, model.safetensors (the averaged weights), pixels.safetensors (constants of the data),
        snapshots/ averages/ checkpoints/ samples/ tensorboard/
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
from PIL.Image import Image
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from composcope.diffusion.checkpoint import save_tensors
from composcope.diffusion.ema import Profile, gamma_of, reconstruct
from composcope.diffusion.loss import Loss
from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import noise_levels, sample
from composcope.diffusion.train import parts_of, train, use
from composcope.errors import InputError
from composcope.files import locked, write_png, write_text
from composcope.nets.layers import renormalize
from composcope.runs.config import Config, difference
from composcope.runs.data import Images, complete, examples_of, images_of, measured
from composcope.runs.model import SHIPPED, Model, find, load, weights_path

SHEET_K = (0, 1, 2, 3, 5, 7, 9)  # how much the sheets of a run ask for, a row each
SHEET_SEEDS = range(4)

Sheet = Callable[[np.ndarray, Sequence[Sequence[tuple[float, float]]], int], Image]  # images, asked places, columns


def start(config: Config, folder: str | Path, sheet: Sheet | None = None, device: str | None = None) -> None:
    """Train `config` in `folder`, or go on; `sheet` draws the samples of the run as it goes."""
    config = complete(config)
    folder, rank = Path(folder), int(os.environ.get("RANK", 0))
    device = device or (f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda"):
        torch.cuda.set_device(device)  # not run here
    if config.threads:
        use(config.threads, config.threads)
    with locked(folder) if rank == 0 else nullcontext():
        same_run(config, folder)
        for partial in folder.rglob(".*.part") if rank == 0 else ():
            partial.unlink()  # of a process that was killed while it wrote
        if (folder / "model.safetensors").exists():
            print(f"composcope: {folder} is finished; nothing to do", file=sys.stderr)
            return
        images = images_of(config)
        model = Model(config, *constants(config, images, folder / "pixels.safetensors"))
        if config.init:
            begin(model, config.init)
        make = examples_of(model, images)
        parts_of(config.recipe)
        if rank == 0:
            config.save(folder / "config.json")  # only now: what cannot be built leaves no trace

        def keep(name: str, weights: Mapping[str, Tensor]) -> None:
            save_tensors(weights_path(folder, name), model.state_dict() | dict(weights))

        def draw(step: int, weights: Mapping[str, Tensor]) -> None:
            if sheet:
                write_png(folder / "samples" / f"{step:09d}.png", samples(model, weights, sheet))

        train(model, Loss(model.denoiser), make, config.recipe, folder, renormalize, keep, draw, device)


def begin(model: Model, run: str) -> None:
    """Give `model` the weights of another run, fixed frequencies included; what was measured of its data stays."""
    own = {name for name in model.state_dict() if name.startswith("pixels.") or name.endswith(".sigma_data")}
    theirs = {name: tensor for name, tensor in load(run).state_dict().items() if name not in own}
    for name, tensor in model.state_dict().items():
        if name not in own and (name not in theirs or theirs[name].shape != tensor.shape):
            raise InputError(f"--init: {run} has another network than this run ({name}); give it the same architecture")
    model.load_state_dict(theirs, strict=False)


def constants(config: Config, images: Images, path: Path) -> tuple[Pixels, float]:
    """The pixel constants and sigma_data, measured when the run began and read from then on."""
    if not path.exists():
        pixels, sigma_data = measured(config, images)
        save_tensors(path, pixels.state_dict() | {"sigma_data": torch.tensor(sigma_data)})
    try:
        kept = load_file(path)
        return Pixels(kept["centre"], float(kept["scale"])), float(kept["sigma_data"])
    except (SafetensorError, KeyError) as error:
        raise InputError(f"{path} is damaged ({error}); remove it and it is measured again, the same") from None


def same_run(config: Config, folder: Path) -> None:
    """An InputError if the folder holds a run of another configuration; it is not touched."""
    path = folder / "config.json"
    others = {file.name for file in folder.iterdir() if not file.name.startswith(".")} - {"pixels.safetensors"}
    if others and not path.exists():
        raise InputError(
            f"{folder} holds {min(others)} and no config.json: not a run; choose another folder with --out"
        )
    if path.exists() and (differs := difference(Config.load(path), config)):
        raise InputError(f"{folder} holds another run ({differs}); choose another folder with --out")


def samples(model: Model, weights: Mapping[str, Tensor], sheet: Sheet, steps: int = 16) -> Image:
    """What the model draws with these weights: a row for each K of SHEET_K, always from the same seeds."""
    conditioner = model.conditioner
    rows: list[tuple] = [()] * len(SHEET_K) * len(SHEET_SEEDS)
    if conditioner:
        rows = [one for K in SHEET_K for one in conditioner.ask(min(K, conditioner.most), len(SHEET_SEEDS))]
    cond = conditioner(rows) if conditioner else None

    def averaged(x: Tensor, sigma: Tensor, cond: Tensor | None) -> Tensor:
        return torch.func.functional_call(model, dict(weights), (x, sigma, cond))

    device = next(iter(weights.values())).device
    x = sample(averaged, [*SHEET_SEEDS] * len(SHEET_K), model.shape, cond, noise_levels(steps), device=device)
    asked = rows if conditioner and conditioner.has_places else [()] * len(rows)
    return sheet(model.pixels.decode(x), asked, len(SHEET_SEEDS))


def reaverage(run: str | Path, sigma_rel: float) -> Model:
    """The finished model of a run with its weights averaged at another width, from the averages kept on the way."""
    folder = find(run)
    config, model = Config.load(folder / "config.json"), load(folder)
    kept = []
    for path in sorted((folder / "averages").glob("*.safetensors")):
        tensors = load_file(path)
        for width in config.recipe.sigma_rels:
            weights = {name: tensors[f"{width}/{name}"] for name, _ in model.named_parameters()}
            kept.append((Profile(int(path.stem), gamma_of(width)), weights))
    if not kept:
        raise InputError(f"{folder} has no averages to make another one from")
    model.load_state_dict(reconstruct(kept, Profile(config.recipe.steps, gamma_of(sigma_rel))), strict=False)
    return model


def ship(run: str | Path, name: str, snapshots: Sequence[str] = ("final",), lines: int = 200) -> Path:
    """Add a run to the shipped models: its weights in half precision, its configuration, a short log."""
    folder, target = find(run), SHIPPED / name
    Config.load(folder / "config.json").save(target / "config.json")
    log = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    write_text(target / "log.jsonl", "".join(log[:: -(-len(log) // lines)]))
    for snapshot in snapshots:
        model = load(folder, snapshot)
        halved = {key: weight.half() for key, weight in model.named_parameters() if weight.ndim}
        save_tensors(weights_path(target, snapshot), model.state_dict() | halved)
    return target
