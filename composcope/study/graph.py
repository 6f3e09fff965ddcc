"""A graph of commands, each done once: train -> evaluate -> locality -> features, two at a time or through SLURM.

    ready = {node not done : all that it needs is done}

A node is a `composcope` command; it is done when its marker exists, which is written after the command ended well.
Stopped at any moment, the same call goes on: done nodes are skipped and the commands themselves resume.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from rich.console import Console
from rich.live import Live
from rich.table import Table

from composcope.errors import InputError
from composcope.files import write_text


@dataclass(frozen=True)
class Node:
    """One command of the study. `minutes` is what it is expected to take on one core (or one GPU for large presets)."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    minutes: float = 1.0


@runtime_checkable
class Job(Protocol):
    """A node that was started."""

    def poll(self) -> int | None:
        """None while it runs, then its exit code."""
        ...

    def stop(self) -> None: ...


@dataclass
class LocalJob:
    process: subprocess.Popen

    def poll(self) -> int | None:
        return self.process.poll()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def start_local(node: Node, log: Path) -> Job:
    """One thread a process: two such processes side by side beat one with two threads."""
    log.parent.mkdir(parents=True, exist_ok=True)
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
    with open(log, "ab") as out:
        command = [sys.executable, "-m", "composcope", *node.command]
        return LocalJob(subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **threads}))


@dataclass
class ClusterJob:
    """A submitit job; not run on a real cluster here, its local executor is what the tests run."""

    job: object

    def poll(self) -> int | None:
        if not self.job.done():  # type: ignore[attr-defined]
            return None
        return 0 if self.job.exception() is None else 1  # type: ignore[attr-defined]

    def stop(self) -> None:
        self.job.cancel()  # type: ignore[attr-defined]


def cluster_starter(folder: Path, cluster: str | None = None, gpus: int = 1) -> Callable[[Node, Path], Job]:
    """Start nodes through submitit: SLURM where there is one (`cluster=None` finds out), "local" for a test."""
    try:
        import submitit
    except ImportError:
        raise InputError("the slurm executor needs the extra 'cluster': pip install 'composcope[cluster]'") from None
    executor = submitit.AutoExecutor(folder=folder / "submitit", cluster=cluster)
    executor.update_parameters(timeout_min=48 * 60, name="composcope")
    if executor.cluster == "slurm":
        executor.update_parameters(slurm_gpus_per_node=gpus)
    return lambda node, log: ClusterJob(executor.submit(run_command, node.command, str(log)))


def run_command(command: Sequence[str], log: str) -> None:
    """What a cluster job does: the command, output to the log; a failure raises, which marks the job as failed."""
    Path(log).parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as out:
        subprocess.run([sys.executable, "-m", "composcope", *command], stdout=out, stderr=out, check=True)


class Study:
    """The nodes, the folder they leave their marks in, and what is known of each: waiting, running, done, failed."""

    def __init__(self, nodes: Sequence[Node], folder: str | Path) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.folder = Path(folder)
        self.running: dict[str, tuple[Job, float]] = {}
        self.failed: set[str] = set()
        unknown = {need for node in nodes for need in node.needs} - set(self.nodes)
        if unknown:
            raise InputError(f"the plan needs nodes it does not have: {', '.join(sorted(unknown))}")

    def marker(self, name: str) -> Path:
        return self.folder / "done" / f"{name}.json"

    def log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def done(self, name: str) -> dict | None:
        """What was noted when this very command was done; of another command under its name, nothing."""
        marker = self.marker(name)
        said = json.loads(marker.read_text(encoding="utf-8")) if marker.exists() else {}
        return said if said.get("command") == list(self.nodes[name].command) else None

    def state(self, name: str) -> str:
        if self.done(name):
            return "done"
        if name in self.running:
            return "running"
        lost = name in self.failed or any(self.state(need) == "failed" for need in self.nodes[name].needs)
        return "failed" if lost else "waiting"

    def ready(self) -> list[Node]:
        """Waiting nodes whose needs are all done, in the order of the plan."""
        waiting = [node for node in self.nodes.values() if self.state(node.name) == "waiting"]
        return [node for node in waiting if all(self.state(need) == "done" for need in node.needs)]

    def minutes_of(self, name: str) -> float:
        """What is left of one node."""
        if name in self.running:
            return max(self.nodes[name].minutes - (time.monotonic() - self.running[name][1]) / 60, 0.0)
        return self.nodes[name].minutes if self.state(name) == "waiting" else 0.0

    def minutes_left(self, jobs: int) -> float:
        """All that is left, `jobs` at a time, and no less than the longest chain of nodes that wait for each other."""
        left = {name: self.minutes_of(name) for name in self.nodes}

        def chain(name: str) -> float:
            return left[name] + max(map(chain, self.nodes[name].needs), default=0.0)

        return max(sum(left.values()) / jobs, *map(chain, left)) if left else 0.0

    def collect(self) -> None:
        """Mark what has ended; a failed node keeps its log and does not stop the others."""
        for name, (job, started) in list(self.running.items()):
            code = job.poll()
            if code is None:
                continue
            del self.running[name]
            if code == 0:
                minutes = (time.monotonic() - started) / 60
                write_text(self.marker(name), json.dumps({"minutes": minutes, "command": self.nodes[name].command}))
            else:
                self.failed.add(name)

    def run(self, start: Callable[[Node, Path], Job] = start_local, jobs: int = 2, pause: float = 0.5) -> list[str]:
        """Do everything that is left; returns the names of the nodes that failed (or wait for one that did)."""
        try:
            with Live(self.table(jobs), console=Console(stderr=True), refresh_per_second=2) as live:
                while self.running or self.ready():
                    for node in self.ready()[: max(jobs - len(self.running), 0)]:
                        self.running[node.name] = (start(node, self.log(node.name)), time.monotonic())
                    time.sleep(pause)
                    self.collect()
                    live.update(self.table(jobs))
        finally:
            for job, _ in self.running.values():
                job.stop()
        return [name for name in self.nodes if self.state(name) == "failed"]

    def table(self, jobs: int) -> Table:
        """What is done and what is left, with the minutes each took or is expected to take."""
        table = Table("node", "state", "minutes", title=f"about {self.minutes_left(jobs):.0f} minutes left")
        colors = {"done": "green", "running": "cyan", "failed": "red", "waiting": "dim"}
        for name, node in self.nodes.items():
            state, done = self.state(name), self.done(name)
            minutes = f"{done['minutes']:.1f}" if done else f"~{node.minutes:.1f}"
            table.add_row(name, f"[{colors[state]}]{state}[/]", minutes)
        return table
