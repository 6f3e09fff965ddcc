"""Kills at random moments and at every rename, full disks, two writers: what ends must end the
same.

Each piece of work runs in a forked child, which is killed and started again until it has ended;
then its folder holds, byte for byte, what a run that nothing happened to left (times aside)."""

import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import composcope.runs.data as data
from composcope.diffusion import checkpoint
from composcope.errors import InputError
from composcope.evaluation import evaluate
from composcope.results import add_rows, read_rows, row
from composcope.runs.config import configure
from composcope.runs.model import load
from composcope.runs.training import start
from composcope.scenes import Rules
from composcope.scenes.export import Job, export

TINY = {"images": 64, "batch": 8, "checkpoint_every": 2, "log_every": 2}
TINY |= {"sheet_every": 100, "average_every": 2}


@dataclass
class Tally:
    kills: int = 0
    ends: int = 0
    lost: list[str] = field(default_factory=list)  # a step, a row, an image that was there before
    different: list[str] = field(default_factory=list)  # ends that are not bit for bit the same

    @property
    def faults(self) -> list[str]:
        return self.lost + self.different


# The work.


def train(folder: Path) -> None:
    data.MEASURED = 64
    start(configure("exp1", "smoke", TINY), folder)


def scenes(folder: Path) -> None:
    export(Job(num=96, size=32, rules=Rules(objects=(1, 2))), folder)


def measure(folder: Path, run: Path) -> None:
    """An evaluation with its images kept and its rows added to a file."""
    rows = evaluate(load(run), K=range(3), num=3, steps=3, batch=1, keep=folder / "images")
    add_rows(folder / "rows.jsonl", rows)


def add(folder: Path, writer: int, rows: int) -> None:
    for number in range(rows):
        add_rows(folder / "rows.jsonl", [row("a", number, run=str(writer), K=number)])


# What is left of it.


def content(folder: Path) -> dict[str, object]:
    """Every file but those that tell the time of day."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or name.startswith("tensorboard"):
            continue
        if path.name == "rows.jsonl":
            found[name] = [replace(one, date=None, commit=None) for one in read_rows(path)]
        elif path.name == "log.jsonl":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            found[name] = [{k: v for k, v in line.items() if k != "speed"} for line in lines]
        else:
            found[name] = path.read_bytes()
    return found


def progress(folder: Path) -> int:
    """How far work has come: steps that are safe, and files that are whole."""
    found = checkpoint.latest(folder / "checkpoints")
    whole = [path for path in folder.glob("images/*") if not path.name.startswith(".")]
    return (found[0] if found else 0) + len(whole)


# Children, forked from a process that has imported all of this and done nothing; what torch imports
# when it is first used is there too, else most kills would fall into that.

SERVER = multiprocessing.get_context("forkserver")
LATE = "torch._dynamo"
SERVER.set_forkserver_preload(["tests.faults.kills", LATE])


def started(
    work: Callable[..., None], folder: Path, *more: Any, rename: int = -1, limit: int = 0
) -> BaseProcess:
    """Work in a child, which kills itself at the rename of this number."""
    child = SERVER.Process(target=do, args=(work, folder, more, rename, limit))
    child.start()
    return child


def do(work: Callable[..., None], folder: Path, more: tuple, rename: int, limit: int) -> None:
    """Exit code 2 for what is refused with a file's name, 3 without one, 1 for a traceback."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        if limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        if rename >= 0:
            kill_at(rename)
        work(folder, *more)
        code = 0
    except (InputError, OSError) as error:
        code = 2 if str(folder) in str(getattr(error, "filename", "") or error) else 3
    finally:
        os._exit(code)


def ended(child: BaseProcess) -> int:
    child.join()
    assert child.exitcode is not None
    return child.exitcode


def done(work: Callable[..., None], folder: Path, *more: Any, **settings: Any) -> int:
    return ended(started(work, folder, *more, **settings))


def kill_at(number: int) -> None:
    """Kill this process before (even) or after (odd) its rename of number // 2."""
    replace_file = os.replace
    count = iter(range(10**9))

    def replaced(*paths: object, **settings: object) -> None:
        here = next(count)
        if 2 * here == number:
            os.kill(os.getpid(), signal.SIGKILL)
        replace_file(*paths, **settings)  # type: ignore[arg-type]
        if 2 * here + 1 == number:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replaced  # type: ignore[assignment]


def reference(
    work: Callable[..., None], folder: Path, *more: Any
) -> tuple[dict[str, object], float]:
    """What the work leaves when nothing happens, and the seconds it takes."""
    began = time.monotonic()
    code = done(work, folder, *more)
    assert code == 0, code
    return content(folder), time.monotonic() - began


# The campaign.


def kill(
    work: Callable[..., None], folder: Path, *more: Any, kills: int, tally: Tally, seed: int = 0
) -> None:
    """So many kills: at random moments, two to a run, and then at one rename after another."""
    name = work.__name__
    chance = random.Random(seed)
    whole, seconds = reference(work, folder / "whole", *more)
    rename = 0
    count = 0
    while count < kills:
        place = folder / f"killed-{count}"
        before = 0
        for turn in range(3):
            child = started(work, place, *more, rename=rename if turn == 2 else -1)
            if turn < 2:
                time.sleep(chance.random() * seconds)
                child.kill()
            code = ended(child)
            count += code == -signal.SIGKILL
            reached = progress(place)
            if reached < before:
                tally.lost.append(f"{name}: {before} before a kill, {reached} after it")
            before = reached
        rename = rename + 1 if code else 0  # beyond the last rename there is nothing to kill
        if done(work, place, *more) != 0 or content(place) != whole:
            tally.different.append(f"{name}: {sorted(set(content(place)) ^ set(whole))}")
        tally.ends += 1
        shutil.rmtree(place)
    tally.kills += count
    shutil.rmtree(folder / "whole")


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[bool]:
    """A disk of so many bytes at `folder`, where one may be mounted; whether it may."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = subprocess.run(words, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def fill(
    work: Callable[..., None], folder: Path, *more: Any, times: int, tally: Tally, seed: int = 0
) -> int:
    """Full disks: the sentence names a file; with room again, the end is the same. How many."""
    name = work.__name__
    chance = random.Random(seed)
    whole, _ = reference(work, folder / "whole", *more)
    sizes = [path.stat().st_size for path in (folder / "whole").rglob("*") if path.is_file()]
    full = 0
    for number in range(times):
        size = max(int(chance.random() * sum(sizes)), 4096)
        place = folder / f"full-{number}"
        with small_disk(place, size) as mounted:
            limit = 0 if mounted else max(int(chance.random() * max(sizes)), 1)
            code = done(work, place / "in", *more, limit=limit)
            full += code != 0
            if code not in (0, 2):
                tally.lost.append(f"{name}: exit code {code} on a full disk of {size} bytes")
            if mounted:
                subprocess.run(["mount", "-o", "remount,size=1g", str(place)], check=True)
            if done(work, place / "in", *more) != 0 or content(place / "in") != whole:
                tally.different.append(f"{name}: after a full disk of {size} bytes")
        shutil.rmtree(place)
    shutil.rmtree(folder / "whole")
    return full


def write_together(folder: Path, writers: int, rows: int, tally: Tally) -> int:
    """Several processes that add rows to one file, and one that is killed; the rows that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    children = [started(add, folder, writer, rows) for writer in range(writers)]
    doomed = started(add, folder, writers, rows)
    while not (folder / "rows.jsonl").exists():
        time.sleep(0.01)
    doomed.kill()
    ended(doomed)
    codes = [ended(child) for child in children]
    found = [one for one in read_rows(folder / "rows.jsonl") if one.run != str(writers)]
    if any(codes) or len(found) != writers * rows:
        tally.lost.append(f"{len(found)} rows of {writers * rows} with exit codes {codes}")
    return len(found)
