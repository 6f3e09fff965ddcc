"""How the theory is shown: a table of claims, and a figure for each toy, drawn from the curves that
it kept."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.box import SIMPLE
from rich.table import Table

from composcope.report.drawing import legend, mosaic
from composcope.results import Row
from composcope.results.arrays import read_arrays

Curves = Mapping[str, np.ndarray]
Drawing = Callable[[Curves], Figure]


def claims_table(rows: Sequence[Row]) -> Table:
    """The words of a claim go under its name, so that a line fits a terminal of 80 columns."""
    shown = Table("claim", "predicted", "measured", "holds", box=SIMPLE)
    for row in rows:
        verdict = "[green]yes[/green]" if row.holds else "[bold red]no[/bold red]"
        name = f"{row.what}\n[dim]{row.claim}[/dim]"
        shown.add_row(name, prediction_text(row), value_text(row), verdict)
    return shown


def value_text(row: Row) -> str:
    """Of a claim's row: "0.42 0.40 to 0.44"; a number that is not finite is none in a row."""
    if row.value is None:
        return "not finite"
    known = row.low is not None and row.high is not None
    return f"{row.value:.3g}" + (f" [dim]{row.low:.2f} to {row.high:.2f}[/dim]" if known else "")


def prediction_text(row: Row) -> str:
    """Of a claim's row: "0 ± 1e-10", "≤ 1"."""
    tolerance = f" ± {row.tolerance:.3g}" if row.tolerance else ""
    signs = {"=": "", "<=": "≤ ", ">=": "≥ "}
    rule = signs.get(row.rule or "", f"{row.rule} ")
    return f"{rule}{row.predicted:.3g}{tolerance}"


WIDTHS = (4.2, 8.4, 10.2, 11.4)  # inches of one panel, two, three, four: letters stay readable


def panels(*titles: str, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTHS[len(titles) - 1], height), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, len(titles))))
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=9)
    return figure, axes


def label_axes(axis: Axes, x: str, y: str) -> None:
    axis.set(xlabel=x, ylabel=y)
    legend(axis)


# By room and name of a toy: its figure, and the words under it.
TOY_FIGURES: dict[str, dict[str, tuple[Drawing, str]]] = {"theory": {}, "sim": {}}


def shown_in(room: str, toy: str, words: str) -> Callable[[Drawing], Drawing]:
    def add(figure: Drawing) -> Drawing:
        TOY_FIGURES[room][toy] = figure, words
        return figure

    return add


theory_toy = partial(shown_in, "theory")
sim_toy = partial(shown_in, "sim")


@theory_toy(
    "length",
    "A toy that composes: 6 x 6 pixels, where an object is a block of four, positive or negative. "
    "Its local score, computed exactly from images of at most two objects, draws up to nine as "
    "asked",
)
def length(curves: Curves) -> Figure:
    titles = ("objects drawn, many images for each K", "one image for each K = 0 to 9")
    figure, (axis, grid) = panels(*titles)
    asked = curves["asked"]
    drawn = curves["drawn"]
    scatter = np.resize(np.linspace(-0.15, 0.15, 7), len(asked))
    axis.plot([0, 9], [0, 9], color="0.8")
    axis.axvline(2, color="0.6", linestyle=":", label="most seen in training: K = 2")
    axis.plot(asked + scatter, drawn, ".", alpha=0.4)
    label_axes(axis, "K asked for", "objects drawn")
    strip(grid, curves["images"], columns=5)
    return figure


@theory_toy(
    "lemma_1",
    "A toy of two pixels that composes by the paper's definition: how far its local score is from "
    "the true one. They are equal only where the pixels are independent when nothing is asked for, "
    "which Lemma 1 does not say",
)
def lemma_1(curves: Curves) -> Figure:
    figure, (axis,) = panels("error of the local score, by noise level")
    for sigma, gap in zip(curves["sigma"], curves["gap"], strict=True):
        axis.plot(curves["rho"], gap, "o-", label=f"$\\sigma$ = {sigma:g}")
    axis.set_yscale("symlog", linthresh=1e-3)
    nothing = "correlation of the two when nothing is asked for"
    label_axes(axis, nothing, "largest |local score - score|")
    return figure


def strip(axis: Axes, images: np.ndarray, columns: int) -> None:
    """Images in rows of `columns`, a blank pixel between them."""
    padded = np.pad(images, ((0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    axis.imshow(mosaic(padded, columns, np.nan), cmap="RdBu_r", vmin=-1.2, vmax=1.2)
    axis.set_axis_off()


@theory_toy(
    "relaxation",
    "Lemma 2, on a chain of four pixels that nearly composes: the divergence (KL) of what the "
    "local score draws from the truth, and its bound. Epsilon is how strongly neighbours are "
    "coupled, sigma the noise. Right: Definition 3 and Lemma 3 take the divergence in opposite "
    "directions",
)
def relaxation(curves: Curves) -> Figure:
    figure, (left, middle, right) = panels(
        "Lemma 2 against coupling", "Lemma 2 against noise", "sup-KL in its two orders"
    )
    sigma = curves["sigma"]
    along = {"coupling epsilon": (left, curves["epsilon"], curves["by_epsilon"])}
    along["noise sigma, epsilon = 0.3"] = (middle, sigma, curves["by_noise"])
    for words, (axis, at, found) in along.items():
        value, error, bound = found.T
        axis.errorbar(at, value, 1.96 * error, fmt="o-", label="KL(truth || local)")
        axis.plot(at, bound, "s--", label="bound")
        axis.set_yscale("log")
        label_axes(axis, words, "nats")
    left.set_xscale("log")
    right.plot(sigma, curves["definition_3"], "o-", label="Definition 3: KL(cond. || marg.)")
    right.plot(sigma, curves["lemma_3"], "s-", label="Lemma 3: KL(marg. || cond.)")
    label_axes(right, "noise sigma", "sum of suprema, nats")
    return figure


@theory_toy(
    "feature_space",
    "Claim 2: does it matter whether noise is added before features A(x) are computed or after? "
    "The divergence (KL) between the two, by the noise",
)
def feature_space(curves: Curves) -> Figure:
    figure, (axis,) = panels("Claim 2: this falls with noise; for A(x) = 2x it rises")
    axis.plot(curves["t"], curves["doubled"], "o-", label="A(x) = 2x")
    axis.plot(curves["t"], curves["turned"], "s-", label="orthogonal A")
    axis.set_xscale("symlog", linthresh=0.25)
    label_axes(axis, "noise t", "KL(noise after A || A after noise)")
    return figure


@theory_toy(
    "projective",
    "Scores of single objects added up, by the background before which each was learned. The "
    "objects asked for (blue) should come out at 1, the others (grey) at 0",
)
def projective(curves: Curves) -> Figure:
    backgrounds = {
        "empty": "nothing",
        "bayes": "one object anywhere (Bayes)",
        "clutter": "each object or not",
        "crowd": "1 to 5 objects",
    }
    figure, axes = panels(*(f"background: {words}" for words in backgrounds.values()))
    for axis, name in zip(axes, backgrounds, strict=True):
        axis.bar(range(8), curves[name], color=["C0", "0.7"] * 4)
        axis.axhline(1, color="0.6", linestyle=":")
        axis.set_ylim(-0.2, 1.2)
        label_axes(axis, "object (blue: asked for)", "mean of the draws")
    return figure


@theory_toy(
    "machines",
    "Score machines draw with averages over training images; nothing is trained. Ideal: of whole "
    "images. Local: patch by patch. Local conditional: patch by patch, given the conditions near "
    "each",
)
def machines(curves: Curves) -> Figure:
    does = {"ideal": "memorises", "local": "ignores what is asked", "local conditional": "composes"}
    titles = (f"{name}: {what} (K = 0..16)" for name, what in does.items())
    figure, axes = panels("trained on 1 or 2 objects", *titles, height=3)
    for name, found in zip(curves["names"], curves["found"], strict=True):
        axes[0].plot(found, "o-", label=name, alpha=0.7)
    label_axes(axes[0], "K asked for", "objects drawn")
    images = dict(zip(curves["names"].tolist(), curves["images"], strict=True))
    for axis, name in zip(axes[1:], does, strict=True):
        strip(axis, images[name], columns=6)
    return figure


@sim_toy(
    "dynamics",
    "Structured Identity Mapping: a linear network W of two layers learns the identity. Its "
    "entries along training. Solid: the diagonal, which reaches 1 where a concept is learned. "
    "Dashed: the others, which grow and are then suppressed",
)
def dynamics(curves: Curves) -> Figure:
    title = "entries of W = U U^T, mu = (1, 1.5):\ngrowth, suppression, the next concept"
    figure, (axis,) = panels(title)
    for index, entry in enumerate(curves["W"].T):
        row, col = divmod(index, 3)
        if row <= col:
            style = "-" if row == col else "--"
            axis.plot(curves["time"], entry, style, label=f"w_{row + 1}{col + 1}")
    label_axes(axis, "training time", "entry of W")
    return figure


# The networks and starts of Swing-by, by their names in the toy.
CASES = {
    "tied/figure_5": "tied, positive",
    "tied/squared": "tied, positive, A squared",
    "tied/far_apart": "tied, positive, far apart",
    "tied/gaussian": "tied, isotropic, width 3",
    "tied/wide": "tied, isotropic, width 64",
    "depth_1": "one layer",
    "positive/2": "positive, width 2",
    "positive/32": "positive, width 32",
    "isotropic/2": "isotropic, width 2",
    "isotropic/8": "isotropic, width 8",
    "isotropic/32": "isotropic, width 32",
    "relu/positive": "ReLU, positive, width 8",
    "relu/isotropic": "ReLU, isotropic, width 8",
    "depth_3": "three layers, width 3",
    "depth_4": "four layers, width 4",
    "depth_4/wide": "four layers, width 64",
}


@sim_toy(
    "swing_by",
    "The loss at the unseen combination from many random starts, by network and start. Red: "
    "Swing-by, it falls, climbs, and falls again. Networks have two layers, if no other number is "
    "given. Tied: both have the same weights. Positive: the first weights have one sign. "
    "Isotropic: they have either. A squared: the equation as in the published scripts. Far apart: "
    "of clusters further from 0",
)
def swing_by(curves: Curves) -> Figure:
    figure = Figure(figsize=(10.4, 8.8), layout="constrained")
    for index, axis in enumerate(figure.subplots(4, 4).flat):
        share, seeds = curves["share"][index], curves["seeds"][index]
        name = str(curves["names"][index])
        axis.set_title(f"{CASES.get(name, name)}\n{share:.0%} of {seeds} starts", fontsize=8)
        for loss, climbed in zip(curves["loss"][index], curves["climbed"][index], strict=True):
            axis.plot(np.linspace(0, 1, len(loss)), loss, color="C3" if climbed else "0.7", lw=0.7)
        axis.set_yscale("log")
        axis.set_ylim(1e-4, 4)
        axis.tick_params(labelsize=7.5)
    figure.supxlabel("training (share of the run)", fontsize=9)
    loss = "loss at the unseen corner / its first value; red: Swing-by; the first 30 starts"
    figure.supylabel(loss, fontsize=9)
    return figure


@sim_toy(
    "failure",
    "The published step diverges from starts from which gradient descent does not. A line is a "
    "random start, w_11 the network's entry for the first concept",
)
def failure(curves: Curves) -> Figure:
    published = "Fig. 10's data, published step W + eta V(W)"
    figure, axes = panels(published, "the same starts, gradient descent on U")
    for axis, name in zip(axes, ("published", "descent"), strict=True):
        for run in curves[name]:
            axis.plot(np.linspace(0, 250, len(run)), np.clip(run, -2, 2), lw=0.8)
        label_axes(axis, "training time", "w_11, cut at -2 and 2")
        axis.set_ylim(-2.1, 2.1)
    return figure


def toy_pictures(room: str, toy: str, folder: Path) -> dict[str, Figure]:
    """By the toy's name, from the curves in `folder`; none without a figure or curves."""
    path = folder / f"{toy}.npz"
    figure, _ = TOY_FIGURES[room].get(toy, (None, ""))
    return {toy: figure(read_arrays(path))} if figure and path.exists() else {}


def toy_figures(room: str, folders: Sequence[Path]) -> Iterator[tuple[Figure, str]]:
    """Figures of a room with their words, each from the first folder that has its curves."""
    for toy, (figure, words) in TOY_FIGURES[room].items():
        paths = (folder / f"{toy}.npz" for folder in folders)
        path = next(filter(Path.exists, paths), None)
        if path:
            yield figure(read_arrays(path)), words
