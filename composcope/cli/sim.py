"""`composcope sim`: Structured Identity Mapping: its claims, how often Swing-by is seen, circles drawn by diffusion."""

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor
from torch.func import functional_call

from composcope.cli.theory import run
from composcope.diffusion.denoiser import Precond
from composcope.diffusion.ema import Weights
from composcope.diffusion.loss import Loss
from composcope.diffusion.train import Recipe, train
from composcope.errors import InputError
from composcope.evaluation.k_max import wilson
from composcope.files import locked, write_png
from composcope.nets import UncertaintyHead, UNet, renormalize
from composcope.report.theory import circles as figure
from composcope.results import Row, add, jsonl, read, writable
from composcope.theory.circles import HELD_OUT, TRAINED, Circles
from composcope.theory.swing_by import STUDIES

DRAWS = 32  # images for each combination and moment, as in the paper


@dataclass(frozen=True)
class Args:
    """composcope sim

    Measure the claims of Structured Identity Mapping: closed forms against gradient descent, the order of concepts, and
    Swing-by as a frequency over seeds (about half a minute on a laptop). Rows go to results/sim.jsonl, figures beside
    it. With --circles, train a small diffusion model on circles instead (minutes; the same command goes on).
    """

    only: tuple[str, ...] = ()
    """Studies to run: dynamics, order, swing_by, failure; all if none is named."""
    circles: bool = False
    """Train a conditional diffusion model on red-big, red-small and blue-big circles; ask it for blue-small."""
    contrast: float = 0.5
    """With --circles: how far apart red and blue are."""
    images: int = 64_000
    """With --circles: length of the training."""
    seed: int = 0
    """With --circles: of weights, noise and data."""
    out: Path = Path("results/sim.jsonl")
    """Where the rows go; figures go beside it."""
    json: bool = False
    """Print the rows as JSON lines in place of the table."""


def main(args: Args) -> None:
    if not args.circles:
        run("sim", STUDIES, args.only, args.out, args.json)
        return
    writable(args.out)
    name = f"circles-{args.contrast:g}-{args.images}-{args.seed}"
    folder = args.out.with_name(f"sim_{name}")
    picture = args.out.with_name(f"sim_{name}.png")
    with locked(folder):
        learn(args, name, folder)
    rows = [row for row in read(args.out) if row.run == name]
    if not rows:
        raise InputError(f"{folder} is trained, and its rows are in another file than {args.out}; name that one")
    write_png(picture, figure(rows))
    if args.json:
        sys.stdout.write(jsonl(rows))
    else:
        Console().print(f"rows: {args.out}; figure: {picture}")


def learn(args: Args, name: str, folder: Path) -> None:
    """Concept accuracies of the averaged weights, sixteen times along the training."""
    data = Circles(args.contrast, seed=args.seed)
    torch.manual_seed(args.seed)
    net = UNet(data.side, features=4, model_channels=32, channel_mult=(1, 2), num_blocks=1, attn_resolutions=(), fold=2)
    model = Precond(net, UncertaintyHead(), sigma_data=data.examples(0, 96).x0.std().item())
    steps = args.images // 64
    every = max(1, steps // 16)
    recipe = Recipe(images=args.images, sheet_every=every, average_every=steps + 1, seed=args.seed)

    def draw(step: int, weights: Weights) -> None:
        def denoiser(x: Tensor, sigma: Tensor, cond: Tensor | None) -> Tensor:
            return functional_call(model, dict(weights), (x, sigma, cond))

        rows = []
        for asked in (*TRAINED, HELD_OUT):
            right = data.right(denoiser, asked, DRAWS).sum(0).tolist()
            for concept, hits in zip(("colour", "size"), right, strict=True):
                setting = {"step": step, "asked": list(asked), "concept": concept, "trained": asked in TRAINED}
                low, high = map(float, wilson(hits / DRAWS, DRAWS))
                rows.append(Row("circles/accuracy", name, hits / DRAWS, setting, args.seed, low, high))
        add(args.out, rows)

    train(model, Loss(model), data.examples, recipe, folder, renormalize, lambda name, weights: None, draw)
