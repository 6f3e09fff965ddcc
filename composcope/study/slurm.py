"""The study through SLURM: a job a node, their order kept by SLURM itself, so that nothing has to
stay and watch.

    sbatch --job-name NAME --dependency afterok:NEEDS --requeue ...

SLURM is asked which jobs there are, by their names: so the command may be stopped and started again
at any moment, and finds its jobs. A job writes the marker of its node when the command has ended
well. Before its time is up, or when it is preempted, the command saves a checkpoint; the job is
queued again and goes on from there."""

import getpass
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from composcope.errors import InputError, Stopped
from composcope.files import folder_for, parse_json
from composcope.options import Int, Word, check_unused
from composcope.progress import live
from composcope.study.schedule import Done, Node, Study, minutes_since

NOTICE = 120  # seconds before the end of its time in which a job saves what it has
# Looks after which an ended job without a marker has failed: a shared disk may be late.
PATIENCE = 5
CPUS = 8  # for each GPU, where a node has as many: they render ahead
# Reasons for which SLURM lets a job wait for ever: no node of the partition can do what is asked.
NEVER = ("PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit", "BadConstraints")


@dataclass(frozen=True)
class Slurm:
    """What a job asks of SLURM. Trainings get all of it; measurements, one node and one GPU."""

    partition: Word = None
    """of the cluster; its default if not given"""
    account: Word = None
    """that is charged for the jobs"""
    time: str = "24:00:00"
    """of one job; a training that needs longer is queued again and goes on"""
    cpus: Int = None
    """cores for each GPU of a job, or each job without one; if not given, 8 or what nodes have"""
    memory: Word = None
    """of a node, such as 64G; the partition's default if not given"""
    gpus: int = 1
    """of each node; 0: compute on cores"""
    nodes: int = 1
    """of a training"""
    slurm: tuple[str, ...] = ()
    """more options of sbatch, such as constraint=a100 qos=low exclusive"""

    def check(self, executor: str) -> None:
        """An InputError for any that was given, where jobs are processes of this machine."""
        if executor == "local":
            why = "is of jobs of a cluster: give --executor slurm"
            check_unused(self, " ".join(vars(self)), why)

    def __post_init__(self) -> None:
        if (self.cpus is not None and self.cpus < 1) or self.gpus < 0 or self.nodes < 1:
            raise InputError("--cpus and --nodes are at least 1, --gpus at least 0")
        for option in self.slurm:
            if not option.partition("=")[0].replace("-", "").isalpha():
                raise InputError(f"--slurm {option}: an option of sbatch is a word, or word=value")

    def options(self, node: Node) -> list[str]:
        """Words of sbatch."""
        gpus, nodes = node_share(self, node)
        asked = {
            "partition": self.partition,
            "account": self.account,
            "time": self.time,
            "nodes": nodes,
            "ntasks-per-node": 1,
            "cpus-per-task": (self.cpus or CPUS) * max(gpus, 1),
            "mem": self.memory,
            "gpus-per-node": gpus or None,
        }
        words = [f"--{name}={value}" for name, value in asked.items() if value is not None]
        return words + [f"--{option}" for option in self.slurm]


@dataclass(frozen=True)
class Order:
    """What a job is to do: the command of a node on so many processes, and the marker it leaves."""

    command: tuple[str, ...]
    marker: str
    gpus: int  # processes of each node, where there is more than one
    nodes: int


def node_share(slurm: Slurm, node: Node) -> tuple[int, int]:
    """The GPUs of each node, and the nodes, that a node of the study gets."""
    if node.command[0] == "train":
        return slurm.gpus, slurm.nodes
    return min(slurm.gpus, 1), 1


def launch(order: Order) -> list[str]:
    """The command of a job: by itself, or through torchrun where it has several processes."""
    plain = [sys.executable, "-m", "composcope", *order.command]
    if order.gpus <= 1 and order.nodes == 1:
        return plain
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    torchrun += ["--nproc-per-node", str(max(order.gpus, 1))]
    if order.nodes == 1:
        return [*torchrun, "--standalone", "-m", "composcope", *order.command]
    # The first node of the job is where its processes meet, at a port that other jobs there do not
    # use.
    names = ["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]]
    answer = subprocess.run(names, capture_output=True, text=True, check=True)
    first = answer.stdout.split()[0]
    port = 20_000 + int(os.environ["SLURM_JOB_ID"]) % 20_000
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{first}:{port}"]
    meeting += ["--nnodes", str(order.nodes)]
    return ["srun", "--kill-on-bad-exit=1", *torchrun, *meeting, "-m", "composcope", *order.command]


# What runs inside a job.


def run_node(order: Order) -> int:
    """Its exit code. Signals are handed on; the notice of the end of time queues it again."""
    notices: list[int] = []
    process: subprocess.Popen | None = None

    def end(number: int, frame: object) -> None:
        notices.append(number)
        if process:
            process.send_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, end)
    began = time.monotonic()
    process = subprocess.Popen(launch(order))
    if notices:  # they came before there was anything to end
        process.send_signal(signal.SIGTERM)
    code = process.wait()
    if code == 0:
        Done(minutes_since(began), order.command).write(order.marker)
    elif signal.SIGUSR1 in notices:
        subprocess.run(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]], check=True)
    return code if code >= 0 else 128 - code


# What runs where the user is.


def ask(*words: str, given: str | None = None) -> str:
    """What a command of SLURM answers; an InputError says what it did not like."""
    if shutil.which(words[0]) is None:
        raise InputError(
            f"there is no SLURM here ({words[0]} is not found); "
            "run this on the cluster, or without --executor"
        )
    answer = subprocess.run(words, input=given, capture_output=True, text=True)
    if answer.returncode:
        reason = " ".join(answer.stderr.split()) or f"exit code {answer.returncode}"
        raise InputError(f"{words[0]}: {reason}")
    return answer.stdout


def job_name(study: Study, node: Node) -> str:
    """The same for the same folder and command, and for no other."""
    what = json.dumps([str(study.folder.resolve()), node.name, node.command])
    return f"composcope-{hashlib.sha256(what.encode()).hexdigest()[:16]}"


def fit_cores(slurm: Slurm) -> Slurm:
    """Where cores are not asked for: as many as nodes have for a GPU, if fewer than usual."""
    if slurm.cpus is not None:
        return slurm
    where = [f"--partition={slurm.partition}"] if slurm.partition else []
    lines = ask("sinfo", "--noheader", "--format=%c", *where).split()
    most = max((int(line.rstrip("+")) for line in lines), default=CPUS)
    return replace(slurm, cpus=max(min(CPUS, most // max(slurm.gpus, 1)), 1))


def queue() -> dict[str, tuple[str, str, str]]:
    """The jobs of this user that have not ended: by name, number, state and why it waits."""
    mine = f"--user={getpass.getuser()}"
    lines = ask("squeue", "--noheader", mine, "--format=%j|%i|%T|%r").splitlines()
    found = (line.strip().split("|", 3) for line in lines)
    return {name: (number, state, reason) for name, number, state, reason in found}


def refuse_what_never_runs(
    study: Study, numbers: Mapping[str, str], queued: Mapping[str, tuple[str, str, str]]
) -> None:
    """An InputError if a job waits for what its partition does not have. Then no job is left that
    waits; what an earlier start has running goes on."""
    for name in numbers:
        _, _, reason = queued.get(job_name(study, study.nodes[name]), ("", "", ""))
        if reason in NEVER:
            ask("scancel", "--state=PENDING", *numbers.values())
            with suppress(OSError):  # not empty: something is there already
                for folder in (study.log(name).parent, study.folder, study.folder.parent):
                    folder.rmdir()
            raise InputError(
                f"{name}: SLURM would never start it ({reason}): no node of the partition has what "
                "is asked for; see --partition, --cpus, --memory, --gpus, --nodes and --time"
            )


def submit(study: Study, node: Node, slurm: Slurm, needs: Sequence[str]) -> str:
    """The number of a new job."""
    gpus, nodes = node_share(slurm, node)
    order = Order(node.command, str(study.marker(node.name).resolve()), gpus, nodes)
    here = [sys.executable, "-m", "composcope.study.slurm", json.dumps(asdict(order))]
    # The command listens to USR1 once it runs.
    script = f"#!/bin/sh\ntrap '' USR1\nexec {shlex.join(here)}\n"
    log = study.log(node.name).resolve()
    words = [f"--job-name={job_name(study, node)}", f"--output={log}"]
    words += ["--open-mode=append", "--parsable"]
    words += ["--requeue", f"--signal=B:USR1@{NOTICE}", f"--comment={node.name}"]
    if needs:
        words += [f"--dependency=afterok:{':'.join(needs)}", "--kill-on-invalid-dep=yes"]
    with folder_for(log.parent):
        answer = ask("sbatch", *words, *slurm.options(node), given=script)
    return answer.strip().partition(";")[0]


def submit_all(study: Study, slurm: Slurm) -> dict[str, str]:
    """Queue what is neither done nor queued; the numbers of all jobs now, by node."""
    queued = queue()
    numbers: dict[str, str] = {}
    for node in study.nodes.values():  # a plan names what is needed before what needs it
        if study.done(node.name):
            continue
        if job_name(study, node) in queued:
            numbers[node.name] = queued[job_name(study, node)][0]
        else:
            needs = [numbers[need] for need in node.needs if need in numbers]
            numbers[node.name] = submit(study, node, slurm, needs)
    return numbers


def run(study: Study, slurm: Slurm, pause: float = 5.0) -> list[str]:
    """Queue all that is left and watch it; the nodes that failed. May be left any time."""
    numbers = submit_all(study, fit_cores(slurm))
    waiting = set(numbers)
    looks = dict.fromkeys(waiting, 0)
    at_once = len(study.nodes)
    try:
        with live(study.table(at_once)) as shown:
            while waiting:
                queued = queue()
                refuse_what_never_runs(study, numbers, queued)
                for name in sorted(waiting):
                    _, state, _ = queued.get(job_name(study, study.nodes[name]), ("", "", ""))
                    if state == "RUNNING":
                        study.running.setdefault(name, (None, time.monotonic()))
                    else:
                        study.running.pop(name, None)
                    if not state:
                        looks[name] += 1
                    if study.done(name):
                        waiting.remove(name)
                    elif looks[name] > PATIENCE:
                        waiting.remove(name)
                        study.failed.add(name)
                shown.update(study.table(at_once))
                time.sleep(pause)
    except KeyboardInterrupt:
        sentence = "the jobs go on without this; the same command shows how far they are"
        raise Stopped(sentence) from None
    return [name for name in study.nodes if study.state(name) == "failed"]


if __name__ == "__main__":
    sys.exit(run_node(parse_json(sys.argv[1], Order, "the order of a job")))
