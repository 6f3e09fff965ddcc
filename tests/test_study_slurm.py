"""The study through a real SLURM of one node: order, preemption, kills, torchrun inside a job, and
no SLURM at all.

Where it may (root; SLURM installed, which tests/slurm/one-node does on Debian), else skipped with
the reason."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch
from same_process import composcope

from composcope.diffusion import checkpoint
from composcope.errors import InputError
from composcope.runs.config import configure
from composcope.runs.training import start
from composcope.study import slurm
from composcope.study.schedule import Node, Study
from composcope.study.slurm import Order, Slurm, launch, queue, submit_all
from composcope.tensors import read_tensors

ONE_NODE = Path(__file__).parent / "slurm" / "one-node"
CORES = Slurm(gpus=0, cpus=1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if os.getuid() != 0:
        pytest.skip("only root may start SLURM's daemons")
    if shutil.which("slurmctld") is None:
        pytest.skip("SLURM is not installed; `tests/slurm/one-node install` does it on Debian")
    folder = tmp_path_factory.mktemp("slurm")
    started = subprocess.run([ONE_NODE, "start", folder], capture_output=True, text=True)
    if started.returncode or "idle" not in started.stdout:
        subprocess.run([ONE_NODE, "stop", folder])
        pytest.skip(f"SLURM does not start here: {started.stdout} {started.stderr}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        yield
    subprocess.run([ONE_NODE, "stop", folder], check=True)


def study_in(folder: Path, images: int = 1600) -> Study:
    """A training and what waits for it."""
    train = (
        "train",
        "exp1",
        "--preset",
        "smoke",
        "--images",
        str(images),
        "--out",
        str(folder / "run"),
    )
    nodes = [Node("train exp1", train), Node("then", ("--version",), needs=("train exp1",))]
    return Study(nodes, folder)


def until(true, number: str) -> None:
    """Wait; but not for a job that has ended."""
    while not true():
        time.sleep(0.2)
        assert state_of(number) or true()


def state_of(number: str) -> str:
    return next((state for found, state, _ in queue().values() if found == number), "")


def reached(folder: Path) -> int:
    """The step of the last checkpoint."""
    found = checkpoint.latest(folder / "run" / "checkpoints")
    return found[0] if found else 0


@pytest.fixture(scope="module")
def whole(cluster, tmp_path_factory):
    """The weights of a training that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    start(configure("exp1", "smoke"), folder)
    return read_tensors(folder / "model.safetensors")


def same(folder: Path, whole: dict[str, torch.Tensor]) -> bool:
    tensors = read_tensors(folder / "run" / "model.safetensors")
    return all(torch.equal(tensors[name], tensor) for name, tensor in whole.items())


def test_what_was_preempted_or_out_of_time_goes_on_from_its_checkpoint(tmp_path, whole):
    study = study_in(tmp_path)
    numbers = submit_all(study, CORES)
    number = numbers["train exp1"]
    for disturb in (["scontrol", "requeue"], ["scancel", "--batch", "--signal=USR1"]):
        until(lambda: state_of(number) == "RUNNING", number)
        before = reached(tmp_path)
        until(lambda before=before: reached(tmp_path) > before, number)
        subprocess.run([*disturb, number], check=True)
        until(lambda: state_of(number) != "RUNNING", number)
    assert submit_all(study, CORES) == numbers  # a driver that comes back finds its jobs
    assert slurm.run(study, CORES, pause=0.5) == []
    assert study.log("train exp1").read_text().count("the same command goes on from image") == 2
    assert same(tmp_path, whole)
    times = [study.marker(name).stat().st_mtime for name in ("train exp1", "then")]
    assert times == sorted(times)


def test_a_job_that_was_killed_fails_with_what_waits_for_it_and_is_done_the_next_time(
    tmp_path, whole, monkeypatch
):
    monkeypatch.setattr(slurm, "PATIENCE", 1)
    study = study_in(tmp_path)
    number = submit_all(study, CORES)["train exp1"]
    until(lambda: reached(tmp_path), number)
    for process in Path("/proc").glob("[0-9]*"):
        words = read_words(process)
        if "composcope" in words and str(tmp_path / "run") in words:
            os.kill(int(process.name), signal.SIGKILL)
    assert slurm.run(study, CORES, pause=0.5) == ["train exp1", "then"]
    assert slurm.run(study_in(tmp_path), CORES, pause=0.5) == []
    assert same(tmp_path, whole)


def read_words(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_text().split("\0")
    except OSError:
        return []


def test_a_training_on_two_gpus_starts_through_torchrun(tmp_path, cluster):
    """The GPUs of this SLURM are only names, so its two processes compute on cores."""
    study = study_in(tmp_path, images=160)
    assert (
        slurm.run(study, Slurm(gpus=2, cpus=1, memory="1G", time="10", partition="cpu"), pause=0.5)
        == []
    )
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert study.log("train exp1").read_text().count("160/160") == 1
    order = Order(study.nodes["train exp1"].command, "", 2, 1)
    assert launch(order)[1:5] == ["-m", "torch.distributed.run", "--nproc-per-node", "2"]


def test_what_slurm_refuses_is_told_in_a_sentence_and_leaves_nothing(tmp_path, cluster):
    study = study_in(tmp_path / "study")
    with pytest.raises(InputError, match=r"sbatch: .*nowhere"):
        submit_all(study, Slurm(partition="nowhere"))
    with pytest.raises(InputError, match=r"sbatch: .*[Ii]nvalid generic resource"):
        submit_all(study, Slurm(gpus=0, slurm=("gres=unicorn",)))
    assert list(tmp_path.iterdir()) == []


def test_what_no_node_can_do_is_told_and_leaves_nothing(tmp_path, cluster):
    """SLURM takes such a job, and would let it wait for ever."""
    study = study_in(tmp_path / "study" / "smoke")
    with pytest.raises(InputError, match=r"train exp1: SLURM would never start it .*--cpus"):
        slurm.run(study, Slurm(gpus=0, cpus=64), pause=0.1)
    left = slurm.queue()
    assert not [node for node in study.nodes.values() if slurm.job_name(study, node) in left]
    assert list(tmp_path.iterdir()) == []


def test_cores_that_are_not_asked_for_are_what_a_node_has(stand_in):
    stand_in(sinfo="echo 2; echo 6+")
    assert slurm.fit_cores(Slurm(gpus=0)).cpus == 6
    assert slurm.fit_cores(Slurm(gpus=4)).cpus == 1
    assert slurm.fit_cores(Slurm(gpus=1, cpus=64)).cpus == 64
    stand_in(sinfo="echo 128")
    assert slurm.fit_cores(Slurm(gpus=8)).cpus == 8


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Programs of these names in place of SLURM's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def write(**scripts: str) -> None:
        for name, script in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)

    return write


def test_the_command_line_reaches_sbatch_with_the_order_of_the_jobs(
    tmp_path, monkeypatch, capsys, stand_in
):
    """Jobs are numbered 1, 2, ... and end at once, without a marker: they have failed."""
    said = tmp_path / "said"
    stand_in(squeue="exit 0", sbatch=f'cat >/dev/null; echo "$@" >>{said}; wc -l <{said}')
    monkeypatch.setattr(slurm, "PATIENCE", 0)
    monkeypatch.setattr(slurm.time, "sleep", lambda seconds: None)
    words = ["--partition", "gpu", "--account", "lab", "--time", "2:00:00", "--cpus", "3"]
    words += ["--memory", "9G", "--gpus", "2", "--nodes", "2", "--slurm", "qos=low", "exclusive"]
    with pytest.raises(SystemExit, match="2"):
        composcope(
            *("reproduce", "--preset", "smoke", "--only", "exp1", "--executor", "slurm"),
            *("--out", tmp_path / "study", *words),
        )
    assert "9 of 9 nodes did not end well (train exp1 first)" in capsys.readouterr().err
    train, *others = [line.split() for line in said.read_text().splitlines()]
    asked = ["--partition=gpu", "--account=lab", "--time=2:00:00", "--mem=9G", "--requeue"]
    asked += ["--qos=low", "--exclusive"]
    for line in (train, *others):
        assert set(asked) <= set(line)
    assert {"--nodes=2", "--gpus-per-node=2", "--cpus-per-task=6"} <= set(train)
    assert not [word for word in train if "dependency" in word]
    for line in others:
        assert {"--nodes=1", "--gpus-per-node=1", "--dependency=afterok:1"} <= set(line)


def test_processes_of_several_nodes_meet_at_the_first(monkeypatch, stand_in):
    stand_in(scontrol='echo "$3" | sed "s/n\\[1-2\\]/n1 n2/"')
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    monkeypatch.setenv("SLURM_JOB_ID", "41234")
    words = launch(Order(("train", "exp1"), "", gpus=8, nodes=2))
    assert words[0] == "srun"
    for name, value in (
        ("--nproc-per-node", "8"),
        ("--nnodes", "2"),
        ("--rdzv-endpoint", "n1:21234"),
    ):
        assert words[words.index(name) + 1] == value
    assert words[-4:] == ["-m", "composcope", "train", "exp1"]


def test_options_become_words_of_sbatch():
    train = Node("t", ("train", "exp1"))
    asked = Slurm("gpu", "lab", "2:00", 4, "64G", 8, 2, ("constraint=a100", "exclusive"))
    assert asked.options(train) == [
        *("--partition=gpu", "--account=lab", "--time=2:00", "--nodes=2", "--ntasks-per-node=1"),
        *(
            "--cpus-per-task=32",
            "--mem=64G",
            "--gpus-per-node=8",
            "--constraint=a100",
            "--exclusive",
        ),
    ]
    assert "--gpus-per-node=1" in asked.options(Node("m", ("evaluate",)))
    assert not [word for word in Slurm(gpus=0).options(train) if "gpu" in word]
    for wrong in (
        {"gpus": -1},
        {"cpus": 0},
        {"nodes": 0},
        {"slurm": ("a b=c",)},
        {"slurm": ("=x",)},
    ):
        with pytest.raises(InputError):
            Slurm(**wrong)


def test_without_slurm_one_sentence_and_nothing_is_left(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    out = tmp_path / "study"
    words = ("reproduce", "--preset", "smoke", "--only", "exp1", "--executor", "slurm")
    with pytest.raises(SystemExit, match="2"):
        composcope(*words, "--out", out)
    said = capsys.readouterr().err
    assert said.startswith("composcope: there is no SLURM here (sinfo is not found)")
    assert not out.exists()
