"""The campaign of faults: kills, full disks, several writers, bad files and bad words.

FAULTS_KILLS and FAULTS_INPUTS in the environment make it shorter than the 200 and 10,000 of README.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.faults import commands, inputs, kills

KILLS = int(os.environ.get("FAULTS_KILLS", 200))
INPUTS = int(os.environ.get("FAULTS_INPUTS", 10_000))


def rows() -> Iterator[tuple[str, str, str]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = folder / "run"
        assert kills.done(kills.train, run) == 0
        tally = kills.Tally()
        share = -(-KILLS // 3)
        kills.kill(kills.train, folder / "train", kills=share, tally=tally)
        kills.kill(kills.scenes, folder / "scenes", kills=share, tally=tally)
        kills.kill(kills.measure, folder / "evaluate", run, kills=share, tally=tally)
        same = tally.ends - len(tally.different)
        what = f"{tally.kills} kills of train, scenes, evaluate, at random moments and at renames"
        ends = f"{len(tally.lost)} lost, {same} of {tally.ends} ends the same"
        yield (what, ends, told(tally.faults))
        disks = kills.Tally()
        times = max(KILLS // 10, 2)
        full = sum(
            kills.fill(work, folder / work.__name__, times=times, tally=disks)
            for work in (kills.train, kills.scenes)
        )
        what = f"{full} full disks"
        same = tally.ends - len(tally.different)
        ends = f"{len(disks.lost)} without a file, {len(disks.different)} ends differ"
        yield (what, ends, told(disks.faults))
        together = kills.Tally()
        written = kills.write_together(folder / "rows", writers=4, rows=100, tally=together)
        same = tally.ends - len(tally.different)
        rows = f"{written} of 400 rows"
        yield ("4 writers of one file, a fifth killed", rows, told(together.faults))
        words = commands.campaign(run, folder / "words", count=INPUTS // 5)
        files = inputs.campaign(run, folder / "files", examples=INPUTS * 4 // 5 // 12)
        for what, found in (("command lines", words), ("files", files)):
            counts = [
                len(part) for part in (found.tracebacks, found.hangs, found.executions, found.left)
            ]
            measured = "{} tracebacks, {} hangs, {} executions, {} leave files".format(*counts)
            tried = f"{found.tried:,} bad {what}, {found.refused:,} refused"
            yield (tried, measured, told(found.faults))


def told(faults: list[str]) -> str:
    return "; ".join(faults[:3])[:200]
