"""A graph of commands, each done once: train -> evaluate -> locality -> features, two at a time or
by SLURM.

    ready = {node not done : all that it needs is done}

A node is a `composcope` command; it is done when its marker exists, which is written after the
command ended well. Stopped at any moment, the same call goes on: done nodes are skipped and the
commands themselves resume. Commands that run here end with the process that started them; those of
SLURM (study/slurm.py) go on without it."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from rich.table import Table

from composcope.errors import InputError
from composcope.files import folder_for, held, lives, read_json, write_text
from composcope.progress import live


@dataclass(frozen=True)
class Node:
    """One command of the study; `minutes` are expected on one core, or one GPU."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    minutes: float = 1.0


@dataclass(frozen=True)
class Done:
    """What the marker of a node says."""

    minutes: float
    command: tuple[str, ...]

    def write(self, marker: str | Path) -> None:
        write_text(marker, json.dumps(asdict(self)))


# What a started process does first, where there is prctl (Linux): it asks for a SIGTERM (15) when
# its parent ends, in whatever way, and makes sure that this has not happened yet.
CHILD = """
import ctypes, os, sys
parent, *command = sys.argv[1:]
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 15)  # PR_SET_PDEATHSIG
if os.getppid() != int(parent):
    sys.exit(143)
os.execv(command[0], command)
"""


def start_local(node: Node, log: Path, keep_open: tuple[int, ...] = ()) -> subprocess.Popen:
    """One thread a process: two such processes side by side beat one with two threads."""
    log.parent.mkdir(parents=True, exist_ok=True)
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
    command = [sys.executable, "-c", CHILD, str(os.getpid())]
    command += [sys.executable, "-m", "composcope", *node.command]
    env = {**os.environ, **threads}
    with open(log, "ab") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, env=env, pass_fds=keep_open)


@contextmanager
def driver(folder: Path) -> Iterator[IO]:
    """The lock of the one process that drives the study of a folder; the processes it starts hold
    it too.

    Whoever comes after a driver that was killed waits until what it had started has ended."""
    path = folder / ".lock"
    with folder_for(folder), ExitStack() as stack:
        lock = stack.enter_context(held(path, wait=False))
        if lock is None:
            if driver_lives(path):
                raise InputError(
                    f"{folder} is in use by another `composcope reproduce`; "
                    "wait for it or choose another --out"
                )
            told = f"composcope: waiting for what was left running in {folder} to end"
            print(told, file=sys.stderr)
            lock = stack.enter_context(held(path, wait=True))
        assert lock is not None
        lock.truncate(0)
        lock.write(f"{socket.gethostname()} {os.getpid()}")
        lock.flush()
        yield lock


def driver_lives(path: Path) -> bool:
    """Of another machine we cannot know, and say that it does."""
    try:
        host, process = path.read_text(encoding="utf-8").split()
        return host != socket.gethostname() or lives(int(process))
    except (OSError, ValueError):
        return False


def minutes_since(started: float) -> float:
    return (time.monotonic() - started) / 60


class Study:
    """The nodes, the folder of their marks, and which wait, run, are done or have failed."""

    def __init__(self, nodes: Sequence[Node], folder: str | Path) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.folder = Path(folder)
        # Since when; without a process, SLURM has it.
        self.running: dict[str, tuple[subprocess.Popen | None, float]] = {}
        self.failed: set[str] = set()
        unknown = {need for node in nodes for need in node.needs} - set(self.nodes)
        if unknown:
            raise InputError(f"the plan needs nodes it does not have: {', '.join(sorted(unknown))}")

    def marker(self, name: str) -> Path:
        return self.folder / "done" / f"{name}.json"

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def done(self, name: str) -> Done | None:
        """What was noted when this very command was done; nothing of another under its name."""
        marker = self.marker(name)
        noted = read_json(marker, Done) if marker.exists() else None
        return noted if noted and noted.command == self.nodes[name].command else None

    def state(self, name: str) -> str:
        if self.done(name):
            return "done"
        if name in self.running:
            return "running"
        needs = map(self.state, self.nodes[name].needs)
        return "failed" if name in self.failed or "failed" in needs else "waiting"

    def ready(self) -> list[Node]:
        """Waiting nodes whose needs are all done, in the order of the plan."""
        waiting = [node for node in self.nodes.values() if self.state(node.name) == "waiting"]
        return [node for node in waiting if all(self.state(need) == "done" for need in node.needs)]

    def minutes_of(self, name: str) -> float:
        """What is left of one node."""
        expected = self.nodes[name].minutes
        if name in self.running:
            return max(expected - minutes_since(self.running[name][1]), 0.0)
        return expected if self.state(name) == "waiting" else 0.0

    def minutes_left(self, jobs: int) -> float:
        """All that is left, `jobs` at a time; no less than the longest chain of needs."""
        left = {name: self.minutes_of(name) for name in self.nodes}

        def chain(name: str) -> float:
            return left[name] + max(map(chain, self.nodes[name].needs), default=0.0)

        return max(sum(left.values()) / jobs, *map(chain, left)) if left else 0.0

    def collect(self) -> None:
        """Mark what has ended; a failed node keeps its log and does not stop the others."""
        for name, (process, started) in list(self.running.items()):
            code = process.poll() if process else None
            if code is None:
                continue
            del self.running[name]
            if code == 0:
                Done(minutes_since(started), self.nodes[name].command).write(self.marker(name))
            else:
                self.failed.add(name)

    def run(self, start: Callable = start_local, jobs: int = 2, pause: float = 0.5) -> list[str]:
        """Do all that is left; the names of nodes that failed, or wait for one that did."""
        with driver(self.folder) as lock:
            try:
                with live(self.table(jobs)) as shown:
                    while self.running or self.ready():
                        for node in self.ready()[: max(jobs - len(self.running), 0)]:
                            process = start(node, self.log(node.name), (lock.fileno(),))
                            self.running[node.name] = (process, time.monotonic())
                        time.sleep(pause)
                        self.collect()
                        shown.update(self.table(jobs))
            finally:
                self.stop(pause)
        return [name for name in self.nodes if self.state(name) == "failed"]

    def stop(self, pause: float) -> None:
        """End what runs, and wait until it has ended: it saves what it has."""
        processes = [process for process, _ in self.running.values() if process]
        for process in processes:
            process.terminate()
        while any(process.poll() is None for process in processes):
            time.sleep(pause)

    def table(self, jobs: int, commands: bool = False) -> Table:
        """What is done and what is left, with the minutes each took or is expected to take: what
        runs first, since a terminal shows as much as it has room for. With the command of each, if
        wanted, in the order of the plan."""
        columns = ("node", "state", "minutes", "command")[: 4 if commands else 3]
        table = Table(*columns, title=f"about {self.minutes_left(jobs):.0f} minutes left")
        colors = {"running": "cyan", "failed": "red", "waiting": "dim", "done": "green"}
        states = {name: self.state(name) for name in self.nodes}
        order = [*states] if commands else sorted(states, key=lambda n: [*colors].index(states[n]))
        for name in order:
            state, done = states[name], self.done(name)
            minutes = f"{done.minutes:.1f}" if done else f"~{self.nodes[name].minutes:,.1f}"
            command = " ".join(("composcope", *self.nodes[name].command))
            cells = (name, f"[{colors[state]}]{state}[/]", minutes, command)
            table.add_row(*cells[: len(columns)])
        return table

    def check(self, failed: Sequence[str]) -> None:
        if failed:
            raise InputError(
                f"{len(failed)} of {len(self.nodes)} nodes did not end well ({failed[0]} first): "
                f"see {self.log(failed[0])}"
            )

    def cost(self, jobs: int, hardware: str) -> str:
        """What is left, in words."""
        hours = sum(map(self.minutes_of, self.nodes)) / 60
        return (
            f"{len(self.nodes)} trainings and measurements; {hours:,.1f} hours of {hardware} are "
            f"left, {self.minutes_left(jobs) / 60:,.1f} hours with {jobs} at a time"
        )
