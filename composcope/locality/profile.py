"""From maps to numbers: how far a pixel looks, and how near a condition acts.

    conditional locality = sum_k sum_{i near k} I_k(i)^2 / sum_k sum_i I_k(i)^2       in [0, 1]

The sums run over noise levels, samples, conditions k and pixels i; "near" is the square within `radius` cells of the
condition's place. The scalar is ours: the paper plots one (version 3, figure 2) whose definition is not known to us.
It is 1 exactly when every condition acts near its own place only, which is what a local conditional score says of
conditions (definition 1). A condition acting evenly over the image gives `chance`, the area of its square. Places,
squares and pixels are measured in fractions of the image, so an enlarged image has the same value. Weighing by energy
leaves noise levels at which conditions do nothing without a say.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

RESAMPLES = 500
RADIUS, GRID = 1.5, 8  # cells around a place, and cells along the image: three by three eighths of the image's side


@dataclass(frozen=True)
class Estimate:
    """A measured number and its 95 % bootstrap interval over samples; None where one sample gives none."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.2f}" + ("" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]")


def resampled(values: Float[np.ndarray, "sample *rest"], seed: int = 0) -> Float[np.ndarray, "one_and_resamples *rest"]:
    """Means over samples: first of all of them, then of RESAMPLES draws with replacement (none from one sample)."""
    n = len(values)
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), RESAMPLES if n > 1 else 0)
    weights = np.concatenate([np.ones((1, n)), draws]) / n
    return np.tensordot(weights, values, 1)


def estimate(statistics: Float[np.ndarray, " one_and_resamples"]) -> Estimate:
    """Of a statistic computed on each row of `resampled`."""
    first, rest = statistics[0], statistics[1:][np.isfinite(statistics[1:])]
    return (
        Estimate(float(first), *(float(q) for q in np.quantile(rest, [0.025, 0.975])))
        if len(rest)
        else Estimate(float(first))
    )


def centred_square(
    maps: Float[np.ndarray, "n height width"], pixel: tuple[int, int], fraction: float = 0.9
) -> Int[np.ndarray, " n"]:
    """Side in pixels of the smallest square centred on `pixel` with at least `fraction` of the sum of G^2 (section F).

    The square may stick out of the image, where there is no energy.
    """
    row, column = (np.abs(np.arange(side) - at) for side, at in zip(maps.shape[1:], pixel, strict=True))
    rings = np.maximum.outer(row, column)
    inside = rings.ravel()[:, None] <= np.arange(rings.max() + 1)
    within = (maps**2).reshape(len(maps), -1) @ inside
    # The last column is the whole; a hair's breadth of tolerance keeps fraction = 1 from hanging on round-off.
    enough = within >= fraction * within[:, -1:] * (1 - 1e-12)
    return 2 * enough.argmax(1) + 1


def near(
    places: Float[np.ndarray, "*conditions 2"], size: tuple[int, int], radius: float = RADIUS, grid: int = GRID
) -> Float[np.ndarray, "*conditions height width"]:
    """The part of each pixel's area within `radius` cells (of `grid` along each side) of a place.

    Areas rather than pixel centres: the measure is then exactly the same at every image scale.
    """
    u, v = places[..., 0], places[..., 1]
    rows, columns = (overlap(at, radius / grid, side) for at, side in zip((v, u), size, strict=True))
    return rows[..., :, None] * columns[..., None, :]


def overlap(centre: Float[np.ndarray, "*n"], half: float, side: int) -> Float[np.ndarray, "*n side"]:
    """The part of each of `side` pixels that lies in [centre - half, centre + half], in units of the image."""
    edges = np.clip(np.arange(side + 1) / side, (centre - half)[..., None], (centre + half)[..., None])
    return np.diff(edges) * side


def chance(places: Float[np.ndarray, "*conditions 2"], radius: float = RADIUS, grid: int = GRID) -> float:
    """The conditional locality of conditions that act evenly over the image: the mean area of their squares."""
    return float(np.nanmean(near(places, (1, 1), radius, grid)))


def share(
    energies: Float[np.ndarray, "sample *rest"], parts: Float[np.ndarray, "sample *rest"], seed: int = 0
) -> Estimate:
    """sum of `parts` over sum of `energies`, with an interval over samples; NaN where nothing acts at all."""
    sums = [resampled(np.nansum(e.reshape(len(e), -1), 1), seed) for e in (parts, energies)]
    with np.errstate(invalid="ignore"):
        return estimate(sums[0] / sums[1])


def own_share(
    influences: Float[np.ndarray, "sample condition height width"], places: Float[np.ndarray, "sample condition 2"]
) -> Float[np.ndarray, "sample condition"]:
    """At the pixel of each condition: the part of all squared influence that is its own. Chance is 1 / K."""
    height, width = influences.shape[2:]
    here = np.nan_to_num(places)
    row = np.minimum(here[..., 1] * height, height - 1).astype(int)
    column = np.minimum(here[..., 0] * width, width - 1).astype(int)
    at = (
        np.arange(len(influences))[:, None, None],
        np.arange(influences.shape[1])[:, None],
        row[:, None],
        column[:, None],
    )
    energy = influences[at] ** 2  # [sample, acting condition, place]
    with np.errstate(invalid="ignore"):
        return np.diagonal(energy, axis1=1, axis2=2) / np.nansum(energy, axis=1)


def spearman(a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"], seed: int = 0) -> Estimate:
    """Rank correlation with a bootstrap interval over the pairs; resamples without any spread are left out."""
    from scipy.stats import rankdata  # here, because it takes a second to load and few commands need it

    draws = np.random.default_rng(seed).integers(len(a), size=(20 * RESAMPLES, len(a)))
    index = np.concatenate([np.arange(len(a))[None], draws])
    x, y = (rankdata(values[index], axis=1) for values in (a, b))
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return estimate((x * y).sum(1) / np.sqrt((x**2).sum(1) * (y**2).sum(1)))
