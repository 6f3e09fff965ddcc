"""The command that makes a row again, from its coordinates alone."""

import shlex
from collections.abc import Mapping, Sequence

from composcope.results import Row
from composcope.study.table import BY_NAME


def command(rows: Sequence[Row]) -> str:
    """Of rows that one command makes: they differ in K, noise level, pixel, layer, ... alone."""
    made_by = {"length": evaluate, "locality": locality, "features": features, "circles": circles}
    room = rows[0].room
    return made_by[room](rows) if room in made_by else f"composcope {room}"


def evaluate(rows: Sequence[Row]) -> str:
    row = rows[0]
    if row.snapshot is None:  # drawn by no trained model
        if row.asked == "given":
            return f"composcope evaluate --images {shlex.quote(str(row.run))} --asked asked.json"
        return "python -m composcope.experiments.score_machines"
    most = max(max(one.K or 0, one.max_K or 0) for one in rows)
    words = {
        **model(row),
        "--way": "random" if row.asked == "random" and row.tolerance is not None else None,
        "--num": number_of(rows),
        "--max": most,
        "--tolerance": row.tolerance,
        "--steps": row.steps,
        "--seed": row.seed or None,
    }
    return f"composcope evaluate {weights_of(row)}" + spelled(words)


def locality(rows: Sequence[Row]) -> str:
    row = rows[0]
    words = {
        **model(row),
        "--states": row.states if row.states != "trajectory" else None,
        "--num": number_of(rows),
        "--seed": row.seed or None,
    }
    return f"composcope locality {weights_of(row)}" + spelled(words)


def features(rows: Sequence[Row]) -> str:
    row = rows[0]
    if row.snapshot is None:  # of a text-to-image pipeline
        return f"composcope features --sdxl {shlex.quote(str(row.run))}" + spelled(
            {"--seeds": number_of(rows)}
        )
    words = {**model(row), "--num": number_of(rows), "--seed": row.seed or None}
    return f"composcope features {shlex.quote(str(row.run))}" + spelled(words)


def circles(rows: Sequence[Row]) -> str:
    row = rows[0]
    words = {"--contrast": row.contrast, "--images": row.images, "--seed": row.seed}
    return "composcope sim --circles" + spelled(words)


def number_of(rows: Sequence[Row]) -> int | None:
    """Of images or samples; rows that are counted otherwise have none."""
    return max((row.n for row in rows if row.n is not None), default=None)


def weights_of(row: Row) -> str:
    """A shipped model by its name. Earlier snapshots do not ship: they are where `composcope
    reproduce` trains the runs of the study."""
    earlier = row.run in BY_NAME and row.snapshot not in ("final", None)
    return shlex.quote(f"study/laptop/runs/{row.run}" if earlier else str(row.run))


def model(row: Row) -> dict[str, object]:
    """Which weights, and what was done to them."""
    within = row.intervention is not None and row.radius is not None
    return {
        "--snapshot": row.snapshot if row.snapshot != "final" else None,
        "--intervention": row.intervention,
        "--radius": row.radius if within else None,
    }


def spelled(words: Mapping[str, object]) -> str:
    """What is None is left out."""
    known = [(name, value) for name, value in words.items() if value is not None]
    return "".join(
        f" {name} {value:g}" if isinstance(value, float) else f" {name} {value}"
        for name, value in known
    )
