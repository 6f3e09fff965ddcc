"""How features are shown: cosine matrices (Figures 5, 7, 11, 13), profiles over layers, words over
time (Figure 4 v3).

rows "features/<what>" with layer, part, level -> a profile;  kept arrays (matrices.npz) -> matrices
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from composcope.report.drawing import by_line, legend
from composcope.report.locality import lines_by, over, whiskers
from composcope.report.looks import Look
from composcope.results import Row, where, with_value

Arrays = Mapping[str, np.ndarray]  # by name, as `features` keeps them
LEVELS = {"high": "tab:red", "mid": "tab:orange", "low": "tab:blue"}
NOISE = {"mid": "middle"}  # levels whose name in rows is not the word for them
KINDS = ("hidden", "attention")  # of activations of a text-to-image model
OVERVIEW = ("down", "mid", "up", "latent", "pixel")
MEASURES = {
    "between": "mean cosine, between concepts",
    "within": "mean cosine, within a category",
    "ratio": "ratio, within over between",
}


def level_matrices(kept: Arrays, level: str) -> dict[str, np.ndarray]:
    """Of the arrays that `features` keeps, the matrices of one noise level, by name."""
    found = {}
    for key, matrix in kept.items():
        name, _, at = key.partition("@")
        if key != "concepts" and at in (level, ""):
            found[name] = matrix
    return found


def matrices(
    named: Mapping[str, Float[np.ndarray, "n n"]], concepts: Sequence[str], title: str = ""
) -> Figure:
    """One cosine matrix a layer, from -1 to 1; the first of each row names the concepts."""
    columns = min(5, len(named))
    rows = -(-len(named) // columns)
    side = max(1.7, 0.13 * len(concepts))
    size = (side * columns + 1.6, (side + 0.35) * rows + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for panel in axes.flat[len(named) :]:
        panel.set_axis_off()
    for index, (panel, name) in enumerate(zip(axes.flat, named, strict=False)):
        shown = panel.imshow(named[name], cmap="RdBu_r", vmin=-1, vmax=1)
        panel.set_title(name, fontsize=8)
        first = index % columns == 0
        panel.set(xticks=[], yticks=range(len(concepts)) if first else [])
        if first:
            panel.set_yticklabels(concepts, fontsize=6 if len(concepts) > 12 else 8)
    figure.colorbar(shown, ax=axes, shrink=0.6, label="cosine of two directions")
    figure.suptitle(title, fontsize=9)
    return figure


def level_figure(kept: Arrays, level: str, title: str) -> Figure:
    return matrices(level_matrices(kept, level), list(kept["concepts"]), title)


def run_pictures(run: str, kept: Arrays, rows: Sequence[Row]) -> dict[str, Figure]:
    """Of a run, by name: the matrices of each noise level, and the profile over layers."""
    shown = {"profile": profile(rows)}
    for level in LEVELS:
        shown[f"matrices-{level}"] = level_figure(kept, level, f"{run}; {level} noise")
    return shown


def text_pictures(
    kept: Mapping[str, Arrays], rows: Sequence[Row], few: Sequence[str]
) -> dict[str, Figure]:
    """Of a text-to-image model, by name: matrices of all layers and, of the `few` concepts, of the
    parts of the network; profiles; parts of the network beside output spaces."""
    shown = {}
    for maps, arrays in kept.items():
        title = f"{maps} at high noise"
        concepts = list(arrays["concepts"])
        named = level_matrices(arrays, "high")
        chosen = [i for i, name in enumerate(concepts) if name in few] or range(len(concepts))
        parts = {name: named[name][np.ix_(chosen, chosen)] for name in OVERVIEW if name in named}
        shown[f"{maps}-layers"] = matrices(named, concepts, title)
        shown[maps] = matrices(parts, [concepts[i] for i in chosen], title)
        shown[f"profile-{maps}"] = profile(where(rows, maps=maps))
    return {**shown, "spaces": spaces(where(rows, maps="hidden"))}


def profile(rows: Sequence[Row]) -> Figure:
    """Over the layers from input to output: within and between categories, and their ratio."""
    measures = [name for name in MEASURES if where(rows, what=f"features/{name}")]
    figure = Figure(figsize=(0.8 + 3.2 * len(measures), 3.4), layout="constrained")
    panels = figure.subplots(1, len(measures), squeeze=False)[0]
    for panel, name in zip(panels, measures, strict=True):
        of_kind = where(rows, what=f"features/{name}")
        own = [row for row in of_kind if row.index is not None]
        for level, color in LEVELS.items():
            over(
                panel,
                where(own, level=level),
                "index",
                Look(color, "o"),
                f"{NOISE.get(level, level)} noise",
            )
        for row, style in zip(where(of_kind, part="output"), (":", "--"), strict=False):
            if row.value is not None:
                panel.axhline(
                    float(row.value), color="gray", ls=style, lw=1, label=f"output, {row.layer}"
                )
        panel.set(xlabel="layer, input to output", ylabel=MEASURES[name])
        keep_to_values(panel, own)
    columns = min(5, 3 * len(measures))
    named = by_line(columns, *panels[0].get_legend_handles_labels())
    figure.legend(*named, loc="outside upper left", ncols=columns, fontsize=8)
    return figure


def keep_to_values(panel: Axes, rows: Sequence[Row]) -> None:
    """Keep to the values; an interval of a ratio may run off where its denominator crosses zero."""
    values = np.array([row.estimate.value for row in with_value(rows)] or [0.0])
    room = 0.25 * (np.ptp(values) or 1.0)
    panel.set_ylim(values.min() - room, values.max() + room)
    for part in dict.fromkeys(str(row.part) for row in rows):
        first = min(row.index or 0 for row in where(rows, part=part))
        panel.axvline(first - 0.5, color="gray", alpha=0.5, lw=0.6, zorder=0)
        above = panel.get_xaxis_transform()
        panel.text(first - 0.4, 1.0, part, fontsize=8, color="gray", transform=above, va="bottom")


def spaces(rows: Sequence[Row]) -> Figure:
    """Version 3, Figure 5, top left: within and between categories, in parts of the U-Net."""
    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    panel = figure.add_subplot(xlabel="part of the network, then its output", ylabel="mean cosine")
    shown = [*where(rows, part="mean", level="high"), *where(rows, part="output")]
    names = list(dict.fromkeys(str(row.layer) for row in shown))
    for shift, (name, color) in enumerate((("within", "tab:blue"), ("between", "tab:orange"))):
        own = with_value(where(shown, what=f"features/{name}"))
        at = [names.index(str(row.layer)) + 0.36 * (shift - 0.5) for row in own]
        values = [row.estimate.value for row in own]
        error = whiskers(*(row.estimate for row in own))
        panel.bar(at, values, 0.34, yerr=error, color=color, label=name, error_kw={"lw": 0.8})
    panel.set_xticks(range(len(names)), names)
    panel.axhline(0, color="black", lw=0.6)
    legend(panel)
    return figure


def words_over_time(rows: Sequence[Row]) -> Figure:
    """Version 3, Figure 4, right: the influence of each word over noise levels at two places."""
    influence = where(rows, what="locality/influence")
    pixels = list(dict.fromkeys(row.pixel for row in influence))[:2]
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    panels = figure.subplots(1, len(pixels), sharey=True, squeeze=False)[0]
    for panel, pixel in zip(panels, pixels, strict=True):
        lines_by(panel, where(influence, pixel=pixel), lambda row: row.condition)
        panel.set_title(f"pixel {pixel} of the latent")
        panel.invert_xaxis()
    panels[0].set_ylabel("influence $I_k$")
    columns = 8
    named = by_line(columns, *panels[0].get_legend_handles_labels())
    figure.legend(*named, loc="outside upper left", ncols=columns, fontsize=8)
    return figure


COSINES = ("between", "within", "ratio", "gap")


def by_part(rows: Sequence[Row]) -> dict[tuple[str, str, str], dict[str, Row]]:
    """How alike concepts are, by maps, part of the network or output space, and noise level."""
    named = {f"features/{name}": name for name in COSINES}
    spaces = {"features/feature_space": "between", "features/feature_space_within": "within"}
    by: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        of_part = named.get(row.what) if row.part in ("mean", "output") else None
        name = of_part or spaces.get(row.what)
        if name:
            place = (row.maps or "", row.layer or "", row.level or "")
            by.setdefault(place, {})[name] = row
    return by


def features_table(rows: Sequence[Row]) -> str:
    """A line a part of the network or output space and noise level, then what words do."""
    lines = [f"{'where':<28}{'noise':<7}" + "".join(f"{name:>24}" for name in COSINES)]
    for (maps, layer, level), own in by_part(rows).items():
        cells = [estimate_text(own.get(name)) for name in COSINES]
        place = f"{layer} {maps}"
        lines.append(f"{place:<28}{level:<7}" + "".join(f"{text:>24}" for text in cells))
    if best := least_alike(rows):
        place = f"{best.layer} at {best.level} noise"
        lines.append(f"concepts are least alike in {place}: mean cosine {best.estimate}")
    return "\n".join([*lines, *words_found(rows)])


def least_alike(rows: Sequence[Row]) -> Row | None:
    """The mean cosine nearest to none, of those of layers."""
    between = with_value(where(rows, what="features/between"))
    layers = [row for row in between if row.index is not None]
    return min(layers, key=lambda row: abs(row.estimate.value), default=None)


def words_found(rows: Sequence[Row]) -> list[str]:
    """What the words of a prompt do at the highest noise level, in sentences."""
    alike = with_value(where(rows, what="features/two_places"))
    lines = [f"two places are alike in their words: correlation {row.estimate}" for row in alike]
    thirds = where(rows, what="features/share_in_third")
    highest = max((row.sigma or 0.0 for row in thirds), default=0.0)
    for row in where(thirds, sigma=highest):
        words = f"{estimate_text(row)} of its influence in the third that its clause names"
        lines.append(f'"{row.condition}": {words}, chance 0.33')
    return lines


def estimate_text(row: Row | None) -> str:
    return "" if row is None or row.value is None else str(row.estimate)
