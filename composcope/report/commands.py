"""The command that makes a row again, from its coordinates alone."""

import shlex
from collections.abc import Mapping, Sequence

from composcope.report.material import done_radius
from composcope.results import Row
from composcope.study.shipped import SHIPPED
from composcope.study.table import BY_NAME, MACHINES, PENALTY_RUNS, TRAINED_FURTHER

# Of rows that no command makes: the experiment that does.
EXPERIMENTS = {
    "overlap": "overlap",
    "penalty": "penalty",
    "predict": "predict",
    "text": "neighbourhoods",
    "training": "predict",
}


LEVELS = 9  # noise levels that `composcope locality` looks at unless told otherwise
# Of runs that an experiment trains and measures itself, on images of which nothing is asked.
UNASKED = {"centred": "centred_subject", "cifar10": "centred_subject --data cifar10.npz"}


def command(rows: Sequence[Row]) -> str:
    """Of rows that one command makes: they differ in K, noise level, pixel, layer, ... alone."""
    row = rows[0]
    run = shlex.quote(str(row.run))
    number = max((one.n for one in rows if one.n is not None), default=None)
    seed = row.seed or None
    if row.room == "locality" and row.states == "noised" and ":" in run:  # FILE.py:NAME
        asked = "asked.json" if row.asked == "given" else None
        audited = {"--asked": asked, "--num": number, "--seed": seed}
        return command_line(f"audit {run} --images DIR", audited)
    if row.room in ("length", "locality", "features") and row.snapshot is None:
        return of_no_run(row, number)
    if row.room == "length":
        random = row.asked == "random" and row.tolerance is not None
        words: dict[str, object] = {"--way": "random" if random else None, "--num": number}
        words["--max"] = max(max(one.K or 0, one.max_K or 0) for one in rows)
        words |= {"--tolerance": row.tolerance, "--steps": row.steps, "--seed": seed}
        return of_model("evaluate", row, words)
    if row.room == "locality" and row.run in UNASKED:
        return f"python -m composcope.experiments.{UNASKED[row.run]}"
    if row.room == "locality":
        states = None if row.states == "trajectory" else row.states
        words = {"--asked": given_conditions(rows), "--noise-levels": other_levels(rows)}
        words |= {"--states": states, "--num": number, "--seed": seed}
        return of_model("locality", row, words)
    if row.room == "features":
        return of_model("features", row, {"--num": number, "--seed": seed})
    if row.run == "circles" and row.claim:  # of several trainings
        return "python -m composcope.experiments.circles"
    if row.room == "circles":
        images = max(one.images or 0 for one in rows) or None  # of its last moment
        circles = {"--contrast": row.contrast, "--images": images, "--seed": row.seed}
        return command_line("sim --circles", circles)
    if row.room in EXPERIMENTS:
        return f"python -m composcope.experiments.{EXPERIMENTS[row.room]}"
    return f"composcope {row.room}"


def given_conditions(rows: Sequence[Row]) -> str | None:
    """As they are typed: those whose influence was measured, where they were given."""
    names = dict.fromkeys(row.condition for row in rows if row.condition and row.asked == "given")
    typed = [name.partition(" #")[0] for name in names]  # the second of two alike is numbered
    between = ", " if any(" " in name for name in typed) else " "
    return shlex.quote(between.join(typed)) if typed else None


def other_levels(rows: Sequence[Row]) -> int | None:
    """How many noise levels were looked at, if not the usual number. Rows over all levels come with
    those of each; without them some may be left out here."""
    levels = {row.sigma for row in rows}
    number = len(levels - {None})
    return number if None in levels and number not in (0, LEVELS) else None


def of_no_run(row: Row, number: int | None) -> str:
    """Of what composcope did not train; "" where only Python code of one's own measures it."""
    run = shlex.quote(str(row.run))
    if row.room == "length" and row.asked == "given":
        return f"composcope evaluate --images {run} --asked asked.json"
    if row.run in MACHINES:
        return "python -m composcope.experiments.score_machines"
    audited = row.states == "noised"
    if row.asked is None and row.setting is not None and not audited:  # prompts of a pipeline
        asked = {"--prompt": "PROMPT"} if number == 1 else {"--seeds": number}  # one has one image
        return command_line(f"features --sdxl {run}", asked)
    return ""


def weights_of(row: Row) -> str:
    """A shipped model by its name. What does not ship, and earlier snapshots, are where `composcope
    reproduce` trains the runs of the study, or where an experiment trains its own."""
    run = str(row.run)
    ships = (SHIPPED / run / "config.json").exists() and row.snapshot in ("final", None)
    if run in BY_NAME and not ships:
        run = f"study/laptop/runs/{run}"
    elif run in TRAINED_FURTHER:
        penalty = any(run in both for both in PENALTY_RUNS.values())
        run = f"runs/penalty/{run}" if penalty else f"runs/{run}"
    return shlex.quote(run)


def of_model(start: str, row: Row, words: Mapping[str, object]) -> str:
    """With which weights, and what was done to them."""
    about: dict[str, object] = {"--snapshot": None if row.snapshot == "final" else row.snapshot}
    about |= {"--intervention": row.intervention, "--radius": done_radius(row)}
    return command_line(f"{start} {weights_of(row)}", {**about, **words})


def command_line(start: str, words: Mapping[str, object]) -> str:
    """What is None is left out."""
    told = [f"composcope {start}"]
    for name, value in words.items():
        if value is not None:
            told += [name, f"{value:g}" if isinstance(value, float) else str(value)]
    return " ".join(told)
