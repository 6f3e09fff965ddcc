"""From maps to numbers: how far a pixel looks, how near a condition acts, if conditions act apart.

    conditional locality = sum_k sum_{i near k} I_k(i)^2 / sum_k sum_i I_k(i)^2       in [0, 1]

The sums run over noise levels, samples, conditions k and pixels i; "near" is the square within
`radius` of the condition's place. The scalar is ours: the paper plots one (version 3, figure 2)
whose definition is not known to us. It is 1 exactly when every condition acts near its own place
only, which is what a local conditional score says of conditions (definition 1). A condition acting
evenly over the image gives its chance, the area of its square. Places, squares and pixels are
measured in image sides, so an enlarged image has the same value. Weighing by energy leaves noise
levels at which conditions do nothing without a say.

    overlap = mean over pairs k < l of  <E_k, E_l> / (|E_k| |E_l|)              E_k(i) = I_k(i)^2
    chance  = mean over pairs k < l of  (sum E_k) (sum E_l) / (P |E_k| |E_l|)   P pixels

needs no places, so it serves any conditions: 0 when no two of them act on one pixel, which a
composition over disjoint parts of the image asks for (definition 2), 1 when all act in the same way
everywhere. Chance is the overlap that is expected when each map keeps its shape but is put down
anywhere: the mean over all cyclic shifts of one of the two. Over several noise levels <., .> and
|.| run over them all, and chance shifts within each. A condition that does not act at all has no
overlap; it is left out."""

from itertools import combinations

import numpy as np
from jaxtyping import Float, Int

from composcope.results.estimate import Estimate, estimate, resampled

RADIUS = 0.1875  # in image sides: the square is three eighths of the image wide

Maps = Float[np.ndarray, "sample condition *level height width"]
Energy = Float[np.ndarray, "*level height width"]
Samples = Float[np.ndarray, " sample"]
Parts = Float[np.ndarray, "sample *rest"]


def centred_square(
    maps: Float[np.ndarray, "n height width"], pixel: tuple[int, int], fraction: float = 0.9
) -> Int[np.ndarray, " n"]:
    """Side of the smallest square around `pixel` with `fraction` of the sum of G^2 (section F), in
    pixels; it may stick out of the image, where there is no energy."""
    _, height, width = maps.shape
    row, column = np.abs(np.arange(height) - pixel[0]), np.abs(np.arange(width) - pixel[1])
    rings = np.maximum.outer(row, column)
    inside = rings.ravel()[:, None] <= np.arange(rings.max() + 1)
    within = (maps.astype(float) ** 2).reshape(len(maps), -1) @ inside
    # The last column is the whole; a hair's breadth keeps fraction = 1 from hanging on round-off.
    enough = within >= fraction * within[:, -1:] * (1 - 1e-12)
    return 2 * enough.argmax(1) + 1


def near(
    places: Float[np.ndarray, "*conditions 2"], size: tuple[int, int], radius: float = RADIUS
) -> Float[np.ndarray, "*conditions height width"]:
    """The part of each pixel's area that lies within `radius` of a place.

    Areas rather than pixel centres: the measure is then exactly the same at every image scale."""

    def covered(centre: np.ndarray, side: int) -> np.ndarray:
        """The part of each of `side` pixels in a row that lies within the radius of the centre."""
        edges = np.arange(side + 1) / side
        low, high = (centre - radius)[..., None], (centre + radius)[..., None]
        return np.diff(np.clip(edges, low, high)) * side

    rows, columns = covered(places[..., 1], size[0]), covered(places[..., 0], size[1])
    return rows[..., :, None] * columns[..., None, :]


def near_chance(places: Float[np.ndarray, "*conditions 2"], radius: float = RADIUS) -> float:
    """The locality of conditions that act evenly over the image: their squares' mean area."""
    return float(np.nanmean(near(places, (1, 1), radius)))


def energy_share(energies: Parts, parts: Parts) -> Estimate:
    """sum of `parts` over sum of `energies`, with an interval over samples; NaN for no energy."""
    rest = tuple(range(1, energies.ndim))
    asked = ~np.isnan(energies).all(rest)  # samples of which nothing is asked say nothing
    part = resampled(np.nansum(parts, rest)[asked])
    whole = resampled(np.nansum(energies, rest)[asked])
    with np.errstate(invalid="ignore"):
        return estimate(part / whole, int(asked.sum()))


def own_share(
    influences: Float[np.ndarray, "sample condition height width"],
    places: Float[np.ndarray, "sample condition 2"],
) -> Float[np.ndarray, "sample condition"]:
    """At the pixel of each condition: its part of all squared influence. Chance is 1 / K."""
    samples, conditions, height, width = influences.shape
    here = np.nan_to_num(places)
    row = np.minimum(here[..., 1] * height, height - 1).astype(int)
    column = np.minimum(here[..., 0] * width, width - 1).astype(int)
    sample = np.arange(samples)[:, None, None]
    acting = np.arange(conditions)[:, None]
    # [sample, acting condition, place]
    energy = influences[sample, acting, row[:, None], column[:, None]] ** 2
    with np.errstate(invalid="ignore"):
        return np.diagonal(energy, axis1=1, axis2=2) / np.nansum(energy, axis=1)


def overlaps(influences: Maps) -> tuple[Samples, Samples]:
    """The overlap of each sample's conditions and its chance; NaN where fewer than two act."""
    found = np.full((2, len(influences)), np.nan)
    for index, maps in enumerate(influences):
        pairs = [pair_overlap(a**2, b**2) for a, b in combinations(maps.astype(float), 2)]
        known = [pair for pair in pairs if np.isfinite(pair[0])]
        if known:
            found[:, index] = np.mean(known, axis=0)
    return found[0], found[1]


def pair_overlap(a: Energy, b: Energy) -> tuple[float, float]:
    """The cosine of two maps of energy, and its chance; NaN if one of them is empty or missing."""
    pixels = a.shape[-2] * a.shape[-1]
    shifted = (a.sum((-2, -1)) * b.sum((-2, -1))).sum() / pixels
    with np.errstate(invalid="ignore"):
        norm = np.sqrt((a**2).sum() * (b**2).sum())
        return float(np.divide((a * b).sum(), norm)), float(np.divide(shifted, norm))
