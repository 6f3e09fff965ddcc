"""The campaign of faults: kills, full disks, several writers, bad files and bad words.

FAULTS_KILLS and FAULTS_INPUTS in the environment make it shorter than the 200 and 10,000 of README.
With FAULTS_FOLDER each part keeps its row in that folder, and the same command goes on from there.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from composcope.files import read_json, write_text
from tests.faults import commands, inputs, kills
from tests.faults.readers import corpus, readers

KILLS = int(os.environ.get("FAULTS_KILLS", 200))
INPUTS = int(os.environ.get("FAULTS_INPUTS", 10_000))
FOLDER = os.environ.get("FAULTS_FOLDER")
WRITERS = 4
ROWS = 100  # of each writer

Row = tuple[str, str, str]  # what was tried, what became of it, the first faults


def rows() -> Iterator[Row]:
    with place() as folder:
        run = folder / "run"
        assert kills.done(kills.train, run) == 0
        for name, part in parts(run).items():
            yield kept(name, part, folder)


@contextmanager
def place() -> Iterator[Path]:
    """Where the campaign works."""
    if FOLDER:
        yield Path(FOLDER).resolve()
    else:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)


def kept(name: str, part: Callable[[Path], Row], folder: Path) -> Row:
    """The row of a part, from the disk if it is there."""
    path = folder / f"{name}-{KILLS}-{INPUTS}.json"
    if path.exists():
        return read_json(path, Row)
    print(f"bench: faults: {name} ...", file=sys.stderr)
    shutil.rmtree(folder / name, ignore_errors=True)  # of a part that was stopped
    row = part(folder / name)
    write_text(path, json.dumps(row))
    return row


def parts(run: Path) -> dict[str, Callable[[Path], Row]]:
    """The campaign in the order of its table; `run` is a finished run."""
    return {
        "train": lambda folder: killed(kills.train, folder),
        "scenes": lambda folder: killed(kills.scenes, folder),
        "evaluate": lambda folder: killed(kills.measure, folder, run),
        "disks": filled,
        "writers": written,
        "words": lambda folder: words(folder, run),
        "files": lambda folder: files(folder, run),
    }


def killed(work: Callable[..., None], folder: Path, *more: Path) -> Row:
    tally = kills.Tally()
    kills.kill(work, folder, *more, kills=-(-KILLS // 3), tally=tally)
    same = tally.ends - len(tally.different)
    what = f"{tally.kills} kills of {folder.name}, at random moments and at renames"
    return what, f"{len(tally.lost)} lost, {same} of {tally.ends} ends the same", told(tally)


def filled(folder: Path) -> Row:
    tally = kills.Tally()
    times = max(KILLS // 10, 2)
    full = sum(
        kills.fill(work, folder / work.__name__, times=times, tally=tally)
        for work in (kills.train, kills.scenes)
    )
    measured = f"{len(tally.lost)} without a file's name, {len(tally.different)} ends differ"
    return f"{full} full disks of train and scenes", measured, told(tally)


def written(folder: Path) -> Row:
    tally = kills.Tally()
    count = kills.write_together(folder, writers=WRITERS, rows=ROWS, tally=tally)
    what = f"{WRITERS} writers of one file, one more is killed"
    return what, f"{count} of {WRITERS * ROWS} rows", told(tally)


def words(folder: Path, run: Path) -> Row:
    tally = commands.campaign(run, folder, count=INPUTS // 5)
    return counted("command lines", tally, f"{len(tally.left)} leave files")


def files(folder: Path, run: Path) -> Row:
    """The other four fifths."""
    every = readers(run)
    examples = INPUTS * 4 // 5 // len(every) + 1
    tally = inputs.campaign(every, corpus(folder), folder, examples)
    return counted("files", tally, f"{len(tally.executions)} executions")


def counted(what: str, tally: inputs.Tally, more: str) -> Row:
    measured = f"{len(tally.tracebacks)} tracebacks, {len(tally.hangs)} hangs, {more}"
    return f"{tally.tried:,} bad {what}, {tally.refused:,} refused", measured, told(tally)


def told(tally: kills.Tally | inputs.Tally) -> str:
    """The first faults; all of them go to standard error."""
    for fault in tally.faults:
        print(f"bench: faults: {fault}", file=sys.stderr)
    return "; ".join(tally.faults[:3])[:200]
