"""`composcope reproduce`: the whole study as a graph of resumable commands."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console
from rich.table import Table

from composcope.errors import InputError
from composcope.study import slurm
from composcope.study.plan import plan
from composcope.study.schedule import Study


@dataclass(frozen=True)
class Args:
    """composcope reproduce --preset laptop --only exp1,exp2l

    Every table and figure of the paper: train, evaluate, measure, report. Done once each; the same command goes on
    where it was stopped. --dry-run prints the plan and its cost.
    """

    preset: str = "laptop"
    """smoke, laptop, small or paper: the size of everything"""
    only: str | None = None
    """runs of the study, separated by commas (exp1,exp2l); all of them if not given"""
    executor: Literal["local", "slurm"] = "local"
    """local: processes of this machine; slurm: jobs of the cluster whose login node this is"""
    jobs: int = 2
    """nodes at a time"""
    num: int = 24
    """images drawn for each number of asked objects"""
    seed: int = 0
    """of training"""
    out: Path = Path("study")
    """folder of the study; each preset has its own subfolder"""
    dry_run: bool = False
    """print the plan and its cost, do nothing"""
    job: tyro.conf.OmitArgPrefixes[slurm.Slurm] = slurm.Slurm()


def main(args: Args) -> None:
    if args.jobs < 1 or args.num < 1:
        raise InputError("--jobs and --num are at least 1")
    folder = args.out / args.preset
    nodes = plan(args.preset, folder, args.only, args.num, args.seed)
    study = Study(nodes, folder)
    if args.dry_run:
        show(nodes, study, args.jobs)
        return
    failed = study.run(jobs=args.jobs) if args.executor == "local" else slurm.run(study, args.job)
    if failed:
        raise InputError(
            f"{len(failed)} of {len(nodes)} nodes did not end well ({failed[0]} first): see {study.log(failed[0])}"
        )
    print(f"{len(nodes)} nodes done; rows in {folder / 'results'}; composcope report --study {folder} makes the page")


def show(nodes: list, study: Study, jobs: int) -> None:
    table = Table("node", "state", "minutes", "command", title="the plan")
    for node in nodes:
        table.add_row(node.name, study.state(node.name), f"{node.minutes:.1f}", "composcope " + " ".join(node.command))
    Console(width=200).print(table)
    print(f"{len(nodes)} nodes, about {study.minutes_left(jobs):.0f} minutes with {jobs} at a time")
