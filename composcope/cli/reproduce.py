"""composcope reproduce --preset laptop --only exp1,exp2l

The trained models behind the paper's tables and figures: train, evaluate, measure. Done once each;
the same command goes on where it was stopped. --dry-run prints the plan and its cost."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rich.console import Console

from composcope import options
from composcope.errors import InputError
from composcope.study import cost, slurm
from composcope.study.plan import plan
from composcope.study.schedule import Study


@dataclass(frozen=True)
class Args:
    preset: str = "laptop"  # smoke, laptop, small or paper: the size of everything
    only: options.Runs = None
    executor: Literal["local", "slurm"] = "local"
    """local: processes of this machine; slurm: jobs of the cluster whose login node this is"""
    jobs: int = 2  # nodes at a time
    num: options.Int = None  # images drawn for each number of asked objects; else the table's
    seed: int = 0  # of training
    out: Path = Path("study")  # folder of the study; each preset has its own subfolder
    dry_run: bool = False  # print the plan and its cost, do nothing
    job: slurm.Slurm = field(default_factory=slurm.Slurm)


def main(args: Args) -> None:
    if args.jobs < 1 or (args.num is not None and args.num < 1):
        raise InputError("--jobs and --num are at least 1")
    args.job.check(args.executor)
    folder = args.out / args.preset
    only = None if args.only is None else [name.strip() for name in args.only.split(",")]
    study = Study(plan(args.preset, folder, only, args.num, args.seed), folder)
    if args.dry_run:
        Console(width=220).print(study.table(args.jobs, commands=True))
        print(study.cost(args.jobs, cost.hardware(args.preset)))
        return
    local = args.executor == "local"
    study.check(study.run(jobs=args.jobs) if local else slurm.run(study, args.job))
    then = f"composcope report --study {folder} makes the page"
    print(f"{len(study.nodes)} nodes done; rows in {folder / 'results'}; {then}")
