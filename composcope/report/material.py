"""What the report is made of: rows, pictures and kept arrays, shipped ones and those measured here.

What was measured here takes the place of what ships of the same run, unless it is of the same
weights and of fewer samples; all told apart by coordinates alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from composcope.errors import InputError
from composcope.results import Row, gather, grouped, where, with_value
from composcope.results.arrays import read_origin
from composcope.results.samples import Samples, gather_samples
from composcope.study.effects import Side
from composcope.study.table import TOLERANCE

Kept = tuple[Mapping[str, Any], Mapping[str, np.ndarray]]  # the coordinates of a model, its arrays
FINAL = ["final", None]
# Equal in all rows that one command makes.
CALL: tuple[str, ...] = (
    *("snapshot", "weights", "intervention", "asked", "tolerance", "steps", "states"),
    *("seed", "setting", "contrast"),
)


@dataclass(frozen=True)
class Material:
    rows: Sequence[Row] = ()
    samples: Sequence[Samples] = ()
    maps: Sequence[Kept] = ()  # of locality: what pixels look at
    matrices: Sequence[Kept] = ()  # of features: cosines of concepts
    # Folders of curves of theory and sim, those that come before others first.
    toys: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    close: Sequence[Kept] = ()  # of experiments/overlap: what is drawn at places that come closer

    def samples_of(self, side: Side) -> Samples | None:
        """Asked in the usual way, where there are such; else at random places."""
        found = [some for some in self.samples if fits(some.about, side)]
        return max(found, key=lambda some: some.about.get("asked") != "random", default=None)

    def maps_of(self, side: Side) -> Mapping[str, np.ndarray] | None:
        return next((arrays for about, arrays in self.maps if fits(about, side)), None)


def fits(about: Mapping[str, Any], side: Side) -> bool:
    """Whether these are the coordinates of the final weights of this side."""
    same = all(about.get(name) == value for name, value in side.about.items())
    return same and about.get("snapshot") in FINAL and about.get("states") != "noised"


def material(shipped: Path, folders: Sequence[Path]) -> Material:
    """All that is in these folders; later ones come before earlier ones and what ships."""
    rows = merge_rows(gather([shipped]), gather(folders))
    if not rows:
        places = ", ".join(map(str, folders))
        raise InputError(f"nothing is measured yet: no rows in {places} or with the shipped models")

    def found(name: str) -> list[Path]:
        paths = [path for folder in (shipped, *folders) for path in sorted(folder.rglob(name))]
        return paths[::-1]

    models = {(row.run, row.weights) for row in rows if row.weights is not None}
    runs = {run for run, _ in models}

    def stays(about: Mapping[str, Any]) -> bool:
        """What is kept of weights whose rows made room for those of others goes with them."""
        run, weights = about.get("run"), about.get("weights")
        return run not in runs or weights is None or (run, weights) in models

    def kept(name: str) -> list[Kept]:
        return [one for one in map(read_origin, found(name)) if stays(one[0])]

    def one_each(some: Sequence[Kept]) -> list[Kept]:
        """Of each model and intervention the first."""
        first: dict[tuple, Kept] = {}
        for about, arrays in some:
            first.setdefault((about.get("run"), about.get("intervention")), (about, arrays))
        return list(first.values())

    return Material(
        rows=rows,
        samples=[some for some in gather_samples([shipped, *folders]) if stays(some.about)],
        maps=kept("maps.npz"),
        matrices=kept("matrices.npz"),
        close=one_each(kept("close-*.npz"))[::-1],
        toys={room: found(room) for room in ("theory", "sim")},
    )


def merge_rows(shipped: Sequence[Row], own: Sequence[Row]) -> list[Row]:
    """Shipped rows of a run go where another training of its name was measured here; of the same
    training all snapshots stay. Of equal weights the measurement of more samples counts, as a
    whole; of as many, the one here."""
    here = {(row.run, row.weights) for row in own if row.weights is not None}
    same = here & {(row.run, row.weights) for row in shipped}
    others = {run for run, _ in here} - {run for run, _ in same}
    stays = [row for row in shipped if row.run not in others]
    there = samples_behind(stays)
    ours = samples_behind(own)
    kept = [row for row in stays if ours.get(measurement(row), -1) < there[measurement(row)]]
    return kept + [row for row in own if ours[measurement(row)] >= there.get(measurement(row), 0)]


def samples_behind(rows: Sequence[Row]) -> dict[tuple, int]:
    """The most samples of each measurement; 0 of those that have none, such as claims of theory."""
    by = grouped(rows, measurement)
    return {what: max(row.n or 0 for row in some) for what, some in by.items()}


def measurement(row: Row) -> tuple:
    """What one call of a measurement gives rows of, whatever its number of samples, K or noise
    levels; claims of theory are measured one by one."""
    model = (row.run, row.snapshot, row.intervention, done_radius(row))
    how = (row.asked, row.tolerance, row.states, row.contrast, row.seed)
    return (row.what if row.claim else row.room, *model, *how)


def of_side(rows: Sequence[Row], side: Side, what: str, **coordinates: Any) -> list[Row]:
    """The rows of one measurement of a side: the most usual way to ask and judge, the newest."""
    snapshot = FINAL if side.snapshot == "final" else side.snapshot
    known = with_value(where(rows, what=what, snapshot=snapshot, **side.about, **coordinates))
    return max(grouped(known, call).values(), key=usualness, default=[])


def call(row: Row) -> tuple:
    """How the model of a row was made, asked and judged."""
    return (done_radius(row), *(getattr(row, name) for name in CALL))


def done_radius(row: Row) -> float | None:
    """Of the intervention; without one a radius only says what counts as near."""
    return row.radius if row.intervention else None


def usualness(rows: Sequence[Row]) -> tuple:
    """The larger the more usual: how rows were asked and judged, then the last measured."""
    row = rows[0]
    off = abs((TOLERANCE if row.tolerance is None else row.tolerance) - TOLERANCE)
    return (row.states != "noised", row.asked != "random", -off, row.date or "", row.n or 0)


def one(rows: Sequence[Row], side: Side, what: str, **coordinates: Any) -> Row | None:
    found = of_side(rows, side, what, **coordinates)
    return found[-1] if found else None


def k_max_row(rows: Sequence[Row], side: Side, rule: str = "paper") -> Row | None:
    return one(rows, side, "length/k_max", rule=rule)


def k_max_beside_paper(rows: Sequence[Row], side: Side) -> Row | None:
    """The K_max that the paper's is compared with: by places alone where labels leave objects out,
    since the paper reports extras there, as "+(0-2)", and does not judge them."""
    return k_max_row(rows, side, "places") or k_max_row(rows, side)


def of_nine(rows: Sequence[Row], side: Side) -> Row | None:
    """How many of nine objects asked are drawn."""
    return one(rows, side, "length/found", K=9)


def conditional(rows: Sequence[Row], side: Side) -> Row | None:
    """Conditional locality."""
    return one(rows, side, "locality/conditional_locality")


def of_rooms(rows: Iterable[Row], *rooms: str) -> list[Row]:
    return [row for row in rows if row.room in rooms]
