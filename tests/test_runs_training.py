"""Runs from end to end at the smallest scale: every experiment, kills, two processes, what is
refused."""

import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from apart import Training
from PIL import Image
from safetensors.torch import load_file
from same_process import composcope

from composcope.cli import evaluate, features, locality, sample
from composcope.diffusion import checkpoint
from composcope.diffusion.train import SNAPSHOTS
from composcope.errors import InputError
from composcope.files import locked
from composcope.report.sheets import sheet
from composcope.runs import load, model, training
from composcope.runs.config import EXPERIMENTS, configure
from composcope.runs.training import reaverage, ship, start
from composcope.tensors import save_tensors

TINY = {"images": 64, "batch": 8, "checkpoint_every": 2, "log_every": 2}
TINY |= {"sheet_every": 100, "average_every": 2}
BIN = Path(sys.executable).parent


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Constants from fewer images: what is tested does not depend on them."""
    monkeypatch.setattr("composcope.runs.data.MEASURED", 256)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of eight steps, never interrupted."""
    folder = tmp_path_factory.mktemp("runs") / "exp2l"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("composcope.runs.data.MEASURED", 256)
        config = configure("exp2l", "smoke", TINY)
        start(config, folder, sheet)
    return folder


@pytest.mark.parametrize(
    "experiment", [name for name in EXPERIMENTS if name not in ("images", "exp2l")]
)
def test_every_experiment_trains_and_loads(tmp_path, experiment):
    start(configure(experiment, "smoke", TINY | {"images": 16}), tmp_path)
    trained = load(tmp_path)
    asked = ["red", "red"] if experiment == "color" else [(0.3, 0.3), (0.7, 0.6)]
    cond = trained.conditioner([asked, []])
    x0 = trained(torch.randn(2, *trained.shape), torch.tensor([0.5, 2.0]), cond)
    assert x0.shape == (2, 3, 16, 16) and x0.isfinite().all()
    assert trained.pixels.decode(x0).dtype == np.uint8


def test_a_run_folder_holds_what_it_should(finished):
    assert (finished / "samples/000000008.png").is_file()
    with Image.open(finished / "samples/000000008.png") as picture:
        assert picture.size == (4 * 132 + 4, 7 * 132 + 4)
    steps = [json.loads(line)["step"] for line in (finished / "log.jsonl").read_text().splitlines()]
    assert steps == [2, 4, 6, 8]
    moments = [load(finished, name) for name in SNAPSHOTS]
    for one, other in pairwise(moments):
        pairs = zip(one.parameters(), other.parameters(), strict=True)
        assert any(not torch.equal(a, b) for a, b in pairs)
    assert moments[-1].denoiser.sigma_data > 0.1 and not moments[-1].training


def test_the_same_command_leaves_a_finished_run_alone(finished, capsys):
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.name != ".lock"}
    start(configure("exp2l", "smoke", TINY), finished)
    assert "is finished" in capsys.readouterr().err
    assert before == {
        path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.name != ".lock"
    }


def test_another_configuration_is_refused_and_names_the_field(finished):
    with pytest.raises(InputError, match=r"holds another run \(lr = 0.008 there, 0.1 asked for\)"):
        start(configure("exp2l", "smoke", TINY | {"lr": 0.1}), finished)


def test_a_batch_that_cannot_be_cut_leaves_no_trace(tmp_path):
    with pytest.raises(InputError, match="a batch of 15 images cannot be cut into 2 equal parts"):
        start(
            configure("exp1", "smoke", TINY | {"batch": 15, "accumulate": 2}),
            tmp_path / "new" / "run",
        )
    assert list(tmp_path.iterdir()) == []


def test_constants_of_another_command_are_not_taken_over(tmp_path, finished):
    """A pixels.safetensors without its configuration changed the next run silently."""
    shutil.copy(finished / "pixels.safetensors", tmp_path)
    changes = TINY | {"images": 8, "objects": (5, 5)}
    start(configure("exp2l", "smoke", changes), tmp_path)
    start(configure("exp2l", "smoke", changes), tmp_path / "alone")
    ours = load_file(tmp_path / "pixels.safetensors")
    assert all(
        torch.equal(ours[name], tensor)
        for name, tensor in load_file(tmp_path / "alone/pixels.safetensors").items()
    )
    assert not torch.equal(ours["centre"], load_file(finished / "pixels.safetensors")["centre"])


def test_a_run_begins_with_the_weights_of_another_and_its_own_constants(tmp_path, finished):
    changes = TINY | {"images": 8, "seed": 1, "lr": 1e-9, "objects": (2, 2), "init": str(finished)}
    start(configure("exp2l", "smoke", changes), tmp_path)
    ours, theirs = load(tmp_path), load(finished)
    assert not torch.equal(ours.pixels.centre, theirs.pixels.centre)
    ours.denoiser.sigma_data.copy_(theirs.denoiser.sigma_data)
    inputs = (
        torch.randn(2, *ours.shape),
        torch.tensor([0.5, 2.0]),
        ours.conditioner([[(0.3, 0.3)], []]),
    )
    torch.testing.assert_close(ours(*inputs), theirs(*inputs), rtol=1e-4, atol=1e-4)


@pytest.fixture
def nothing_measured(monkeypatch):
    """Constants of the data, which take a while at the study's sizes, are not measured."""

    def measured(*args):
        raise AssertionError("images were measured first")

    monkeypatch.setattr("composcope.runs.training.pixel_constants", measured)


@pytest.mark.usefixtures("nothing_measured")
def test_a_penalty_without_places_is_refused_before_images_are_measured(tmp_path):
    with pytest.raises(InputError, match="conditions with places"):
        start(configure("color", "smoke", TINY | {"penalty": 0.1}), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("nothing_measured")
def test_a_run_does_not_begin_with_another_network(tmp_path, finished):
    with pytest.raises(InputError, match=r"--init: .* has another network than this run"):
        start(configure("exp1", "smoke", TINY | {"init": str(finished)}), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_is_refused(tmp_path):
    with locked(tmp_path), pytest.raises(InputError, match="in use by another process"):
        start(configure("exp1", "smoke", TINY), tmp_path)
    assert not (tmp_path / "config.json").exists()


def same_files(one, other):
    for name in (
        "model.safetensors",
        "snapshots/first.safetensors",
        "averages/000000006.safetensors",
    ):
        tensors = load_file(other / name)
        assert all(
            torch.equal(tensor, tensors[key]) for key, tensor in load_file(one / name).items()
        ), name


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_step_saves_it_and_says_where_it_goes_on(
    tmp_path, finished, number, code
):
    """At a step that is no checkpoint's, nor a line's of the log."""
    changes = TINY | {"checkpoint_every": 100, "log_every": 4}
    folder = tmp_path / "run"
    child = Training(folder, changes)
    child.reach(3)
    os.kill(child.process.pid, number)
    assert child.ended() == code
    step, _ = checkpoint.latest(folder / "checkpoints")
    assert 3 <= step < 8
    sentence = f"composcope: stopped; the same command goes on from image {8 * step}\n"
    assert sentence in child.said()
    start(configure("exp2l", "smoke", changes), folder)
    same_files(finished, folder)
    lines, whole = (
        [json.loads(line) for line in (f / "log.jsonl").read_text().splitlines()]
        for f in (folder, finished)
    )
    assert [line["step"] for line in lines] == [4, 8]
    # None of its steps is lost.
    assert lines[0]["loss"] == pytest.approx((whole[0]["loss"] + whole[1]["loss"]) / 2)


def test_checkpoints_are_also_made_by_time(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "KEPT", 100)
    start(configure("exp1", "smoke", TINY | {"checkpoint_every": 100}), tmp_path)
    assert len(list((tmp_path / "checkpoints").glob("*.json"))) == 8


def test_every_preset_loses_at_most_five_minutes():
    # The rest is for the step in work; a sheet is drawn after its checkpoint.
    assert checkpoint.SECONDS <= 240


def test_a_foreign_checkpoint_is_refused(tmp_path):
    for name, tensor in (
        ("weights/other", torch.ones(3)),
        ("weights/denoiser.net.conv_in.weight", torch.ones(3)),
    ):
        checkpoint.save(tmp_path / "checkpoints", 3, {name: tensor})
        configure("exp1", "smoke", TINY).save(tmp_path / "config.json")
        with pytest.raises(
            InputError, match=r"the checkpoint of step 3 is not of this run \(weights/"
        ):
            start(configure("exp1", "smoke", TINY), tmp_path)


def test_a_full_disk_names_the_file(tmp_path):
    """A limit on the size of files stands for a disk that is full."""
    child = Training(tmp_path / "run", TINY, limit=100_000)
    assert child.ended() == 2
    assert "Traceback" not in child.said()
    assert re.search(r"composcope: .*snapshots/first.safetensors: File too large", child.said())
    assert not list(tmp_path.rglob("*.part"))


def test_weights_that_are_not_finite_are_refused(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "run")
    for wrong in (float("nan"), float("inf")):
        tensors = load_file(finished / "model.safetensors")
        tensors["denoiser.net.unet.out_gain"].fill_(wrong)
        save_tensors(tmp_path / "run" / "model.safetensors", tensors)
        with pytest.raises(
            InputError, match=r"the numbers of denoiser.net.unet.out_gain are not finite"
        ):
            load(tmp_path / "run")


@pytest.mark.parametrize("workers", [1, 2])
def test_images_rendered_by_worker_processes_are_the_same(tmp_path, finished, workers):
    start(configure("exp2l", "smoke", TINY), tmp_path, workers=workers)
    same_files(finished, tmp_path)


def test_killed_at_random_it_ends_bit_for_bit_as_if_it_never_was(tmp_path, finished):
    """The kill falls anywhere in the step after the one that was told: update, log, averages,
    checkpoint."""
    folder = tmp_path / "run"
    for _ in range(3):
        child = Training(folder, TINY)
        child.reach(random.randrange(1, 8))  # another point each time
        child.process.kill()
        assert child.ended() == -signal.SIGKILL
    start(configure("exp2l", "smoke", TINY), folder)
    assert not list(folder.rglob("*.part"))
    same_files(finished, folder)


def test_two_processes_give_the_weights_of_one(tmp_path, monkeypatch):
    """Twenty steps under torchrun in a new folder, as --help has it; only the order of sums
    differs."""
    monkeypatch.setattr("composcope.runs.data.MEASURED", 2048)  # as the command has it
    changes = {"images": 320, "batch": 16, "checkpoint_every": 20, "log_every": 20}
    start(configure("exp1", "smoke", changes), tmp_path / "one")
    torchrun = [BIN / "torchrun", "--standalone", "--nproc-per-node", "2", "--no-python"]
    torchrun.append(BIN / "composcope")
    flags = ["--images", "320", "--batch", "16"]
    command = [*torchrun, "train", "exp1", "--preset", "smoke", "--out", tmp_path / "two", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("320/320") == 1  # one bar
    (step, one), (also, two) = (
        checkpoint.latest(tmp_path / name / "checkpoints") for name in ("one", "two")
    )
    assert step == also == 20
    for name in one:
        torch.testing.assert_close(
            two[name], one[name], atol=1e-5, rtol=0, msg=lambda m, name=name: f"{name}: {m}"
        )


def test_every_command_computes_on_the_gpu_of_its_local_rank(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    for command in (evaluate, features, locality, sample):
        fields = {field.name: field for field in dataclasses.fields(command.Args)}
        assert fields["device"].default_factory() == "cuda:3"
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(64))
    assert training.own_cores() == 8  # of 64, shared by eight


def test_unknown_devices_are_refused(finished):
    with pytest.raises(InputError, match="there is no device 'banana'"):
        load(finished, device="banana")
    with pytest.raises(InputError, match="there is no device 'meta' to compute on"):
        load(finished, device="meta")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="this machine has no GPU"):
            load(finished, device="cuda:0")


def test_unknown_runs_and_snapshots_are_refused(tmp_path, finished):
    with pytest.raises(InputError, match="there is no run 'nowhere'; it is a run folder or one of"):
        load("nowhere")
    with pytest.raises(
        InputError, match="no snapshot 'last'; the snapshots are first, early, middle, final"
    ):
        load(finished, "last")
    configure("exp1", "smoke").save(tmp_path / "config.json")
    with pytest.raises(InputError, match="has not come so far"):
        load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes((finished / "model.safetensors").read_bytes())
    with pytest.raises(InputError, match="does not hold the weights of this run"):
        load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not tensors at all")
    with pytest.raises(InputError, match=r"model.safetensors cannot be read"):
        load(tmp_path)


def test_a_shipped_model_is_the_run_to_half_precision(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "SHIPPED", tmp_path)
    monkeypatch.setattr(training, "SHIPPED", tmp_path)
    ship(finished, "exp2l", ("early", "final"))
    with pytest.raises(InputError, match="or one of exp2l"):
        load("exp9")
    run, shipped = load(finished), load("exp2l")
    size = [
        sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
        for folder in (tmp_path, finished)
    ]
    assert size[0] < size[1] / 2
    cond, x = run.conditioner([[(0.5, 0.5)]]), torch.randn(1, *run.shape)
    difference = shipped(x, torch.ones(1), cond) - run(x, torch.ones(1), cond)
    assert 0 < difference.abs().max() < 1e-3
    assert load("exp2l", "early").config == run.config


def test_another_width_of_average_comes_from_those_kept(finished):
    same, wider = reaverage(finished, 0.10), reaverage(finished, 0.15)
    final = dict(load(finished).named_parameters())
    for name, weight in same.named_parameters():
        # The kept ones are in half precision.
        torch.testing.assert_close(weight, final[name], atol=4e-3, rtol=1e-3)
    assert any(
        (weight - final[name]).abs().max() > 1e-3 for name, weight in wider.named_parameters()
    )


def test_images_on_disk_are_learned_without_conditions(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (40, 20, 20, 3), np.uint8)
    np.savez(tmp_path / "images.npz", images=images)
    changes = TINY | {"images": 16, "data": str(tmp_path / "images.npz")}
    start(configure("images", "smoke", changes), tmp_path / "run")
    trained = load(tmp_path / "run")
    assert trained.conditioner is None
    assert trained(torch.randn(2, 3, 16, 16), torch.ones(2), None).isfinite().all()
    np.savez(tmp_path / "wrong.npz", pictures=images)
    with pytest.raises(InputError, match=r"nor an \.npz with `images`"):
        start(
            configure("images", "smoke", changes | {"data": str(tmp_path / "wrong.npz")}),
            tmp_path / "other",
        )


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"mine")
    (tmp_path / ".mine.part").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"holds picture.png and no config.json: not a run"):
        start(configure("exp1", "smoke", TINY), tmp_path)
    assert (tmp_path / ".mine.part").exists()


def test_damaged_constants_are_named(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "run", ignore=shutil.ignore_patterns("model.safetensors"))
    (tmp_path / "run" / "pixels.safetensors").write_bytes(b"cut")
    with pytest.raises(InputError, match=r"pixels.safetensors is damaged"):
        start(configure("exp2l", "smoke", TINY), tmp_path / "run")


def test_a_processor_without_bf16_is_told_of(tmp_path, monkeypatch, capsys):
    config = configure("exp1", "smoke", TINY | {"images": 8, "bf16": True})
    monkeypatch.setattr(training, "computes_bf16", lambda: False)
    start(config, tmp_path / "slow")
    assert "train with --bf16 False" in capsys.readouterr().err
    monkeypatch.setattr(training, "computes_bf16", lambda: True)
    start(config, tmp_path / "quick")
    assert "--bf16" not in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_what_gpus_are_given_runs_on_cores_too(tmp_path, monkeypatch):
    """bfloat16, torch.compile and channels-last, all at once, learn nearly the same.

    In a process of their own: the checks of shapes in these tests cannot be compiled."""
    monkeypatch.setattr("composcope.runs.data.MEASURED", 2048)  # as the command has it
    words = ["train", "exp1", "--preset", "smoke", "--images", "64", "--batch", "8", "--mult", "1"]
    composcope(*words, "--out", tmp_path / "plain")
    fast = ["--bf16", "True", "--compile", "True", "--channels-last", "True"]
    command = [sys.executable, "-m", "composcope", *words, *fast, "--out", tmp_path / "fast"]
    # Processes that help to compile cost more than they give: each imports torch first.
    alone = os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=alone)
    assert done.returncode == 0, done.stderr[-1000:]
    plain, quick = (load(tmp_path / name) for name in ("plain", "fast"))
    for weight, other in zip(plain.parameters(), quick.parameters(), strict=True):
        torch.testing.assert_close(other, weight, atol=3e-2, rtol=0)
    assert not all(map(torch.equal, plain.parameters(), quick.parameters()))
