"""`composcope reproduce`: the whole study as a graph of resumable commands."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from composcope.errors import InputError
from composcope.study import cost, slurm
from composcope.study.plan import plan
from composcope.study.schedule import Node, Study


@dataclass(frozen=True)
class Args:
    """composcope reproduce --preset laptop --only exp1,exp2l

    Every table and figure of the paper: train, evaluate, measure, report. Done once each; the same
    command goes on where it was stopped. --dry-run prints the plan and its cost."""

    preset: str = "laptop"
    """smoke, laptop, small or paper: the size of everything"""
    only: Annotated[str | None, tyro.conf.arg(metavar="RUN,RUN,...")] = None
    """runs of the study, separated by commas (exp1,exp2l); all but optional ones if not given"""
    executor: Literal["local", "slurm"] = "local"
    """local: processes of this machine; slurm: jobs of the cluster whose login node this is"""
    jobs: int = 2
    """nodes at a time"""
    num: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None
    """images drawn for each number of asked objects; the table's number if not given"""
    seed: int = 0
    """of training"""
    out: Path = Path("study")
    """folder of the study; each preset has its own subfolder"""
    dry_run: bool = False
    """print the plan and its cost, do nothing"""
    job: tyro.conf.OmitArgPrefixes[slurm.Slurm] = field(default_factory=slurm.Slurm)


def main(args: Args) -> None:
    if args.jobs < 1 or (args.num is not None and args.num < 1):
        raise InputError("--jobs and --num are at least 1")
    folder = args.out / args.preset
    only = None if args.only is None else [name.strip() for name in args.only.split(",")]
    nodes = plan(args.preset, folder, only, args.num, args.seed)
    study = Study(nodes, folder)
    if args.dry_run:
        show(nodes, study, args)
        return
    failed = study.run(jobs=args.jobs) if args.executor == "local" else slurm.run(study, args.job)
    if failed:
        raise InputError(
            f"{len(failed)} of {len(nodes)} nodes did not end well ({failed[0]} first): "
            f"see {study.log(failed[0])}"
        )
    print(
        f"{len(nodes)} nodes done; rows in {folder / 'results'}; "
        f"composcope report --study {folder} makes the page"
    )


def show(nodes: list[Node], study: Study, args: Args) -> None:
    """Every node with its state and minutes, then the hours of the whole."""
    table = Table("node", "state", "minutes", "command", title="the plan")
    for node in nodes:
        command = "composcope " + " ".join(node.command)
        table.add_row(node.name, study.state(node.name), f"{node.minutes:,.1f}", command)
    Console(width=220).print(table)
    left = [study.minutes_of(node.name) for node in nodes]
    hours = study.minutes_left(args.jobs) / 60
    print(
        f"{len(nodes)} nodes; {sum(left) / 60:,.1f} hours of {cost.hardware(args.preset)} "
        f"are left, {hours:,.1f} hours with {args.jobs} at a time"
    )
