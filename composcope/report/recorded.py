"""The recording of the explorer, made of what is kept: Figure 1 by K from samples, Figure 2 by noise level from maps."""

from collections.abc import Mapping, Sequence

import numpy as np

from composcope.report.material import Material, of_side
from composcope.report.recording import Drawn, Looked, recording
from composcope.report.words import name
from composcope.results import Row
from composcope.results.samples import Samples
from composcope.study.table import Side

SHOWN_EACH = 2  # images for each K


def recorded(material: Material, sides: Sequence[Side]) -> str:
    """HTML to be embedded; "" where nothing is kept."""
    samples = {side: found for side in sides if (found := material.samples_of(side))}
    maps = {
        side: found for side in sides if (found := material.maps_of(side)) and len(found["places"])
    }
    squares = {side: of_side(material.rows, side, "locality/square") for side in maps}
    seen = [looked(name(side), kept, squares[side]) for side, kept in maps.items()]
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


def looked(title: str, kept: Mapping[str, np.ndarray], squares: Sequence[Row]) -> Looked:
    """Kept maps, with the sides of the squares from rows; 0 where there is no such row."""
    sides = {(round(row.sigma or 0, 4), row.pixel): row.value for row in squares}
    pixels = [(int(row), int(column)) for row, column in kept["pixels"]]
    rows, columns = np.array(pixels).T
    return Looked(
        title,
        kept["sigmas"].astype(float),
        kept["pictures"],
        pixels,
        kept["gradients"].astype(float),
        np.array(
            [
                [int(sides.get((round(float(s), 4), p), 0) or 0) for p in pixels]
                for s in kept["sigmas"]
            ]
        ),
        kept["influences"][:, :, rows, columns].transpose(0, 2, 1).astype(float),
        kept["places"].tolist(),
    )
