"""The recording of the explorer, made of what is kept: Figure 1 by K from samples, Figure 2 by
noise level from maps."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from composcope.report.marks import name
from composcope.report.material import Material
from composcope.report.recording import Drawn, Looked, recording
from composcope.results.samples import Samples
from composcope.study.effects import Side

SHOWN_EACH = 2  # images for each K


def recorded(material: Material, sides: Sequence[Side]) -> str:
    """HTML to be embedded; "" where nothing is kept."""
    samples = {side: some for side in sides if (some := material.samples_of(side))}
    maps = {
        side: kept for side in sides if (kept := material.maps_of(side)) and len(kept["places"])
    }
    seen = [looked(name(side), kept) for side, kept in maps.items()]
    alike = [
        one
        for one in seen
        if (len(one.sigmas), one.pixels) == (len(seen[0].sigmas), seen[0].pixels)
    ]
    return recording(drawn(samples), alike)


def drawn(samples: Mapping[Side, Samples]) -> list[Drawn]:
    """Only those K that all models were asked for, at places, and as many images of each."""
    found = []
    common = [K for K in range(13) if samples and all(some.of(K) for some in samples.values())]
    for side, some in samples.items():
        chosen = {K: some.of(K)[:SHOWN_EACH] for K in common}
        record = some.record
        found.append(
            Drawn(
                name(side),
                {K: some.images[numbers] for K, numbers in chosen.items()},
                {K: [record.asked[i] for i in numbers] for K, numbers in chosen.items()},  # type: ignore[misc]
                {K: [record.found[i] for i in numbers] for K, numbers in chosen.items()},
                {K: [sum(record.met[i]) for i in numbers] for K, numbers in chosen.items()},
            )
        )
    return found if common else []


def looked(title: str, kept: Mapping[str, np.ndarray]) -> Looked:
    pixels = [(int(row), int(column)) for row, column in kept["pixels"]]
    rows, columns = np.array(pixels).T
    gradients = kept["gradients"].astype(float)
    squares = [[square(*pair) for pair in zip(level, pixels, strict=True)] for level in gradients]
    return Looked(
        title,
        kept["sigmas"].astype(float),
        kept["pictures"],
        pixels,
        gradients,
        np.array(squares),
        kept["influences"][:, :, rows, columns].transpose(0, 2, 1).astype(float),
        kept["places"].tolist(),
    )


def square(gradient: Float[np.ndarray, "h w"], pixel: tuple[int, int], part: float = 0.9) -> int:
    """The side of the smallest square around the pixel that holds this part of the energy."""
    energy = gradient**2
    row, column = pixel
    for reach in range(max(gradient.shape)):
        top, left = max(row - reach, 0), max(column - reach, 0)
        if energy[top : row + reach + 1, left : column + reach + 1].sum() >= part * energy.sum():
            return 2 * reach + 1
    return 2 * max(gradient.shape) + 1
