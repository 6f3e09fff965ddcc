"""`composcope distill`: a student is a run like any other, goes on where it was stopped, and what
is refused leaves nothing behind."""

import json
from functools import partial

import numpy as np
import pytest
import torch
from same_process import composcope

from composcope.diffusion.sample import draw
from composcope.locality import LocalConditions
from composcope.runs import load
from composcope.runs.config import Config, configure
from composcope.runs.distilling import ASKED, asker
from composcope.runs.training import start
from composcope.scenes.condition import LocationGrid

TINY = {"images": 16, "batch": 8, "log_every": 1, "checkpoint_every": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "exp2"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("composcope.runs.data.MEASURED", 256)
        start(configure("exp2", "smoke", TINY), folder)
    return folder


def test_a_student_is_a_run(run, tmp_path, capsys):
    folder = tmp_path / "student"
    flags = ("--images", 48, "--batch", 8, "--steps", 4, "--out", folder)
    composcope("distill", run, *flags)
    assert f"next: composcope evaluate {folder}" in capsys.readouterr().out
    config, model = Config.load(folder / "config.json"), load(run)
    assert (config.teacher.run, config.teacher.weights) == ("exp2", model.fingerprint)
    assert (config.teacher.intervention, config.teacher.radius) == ("local", 0.1875)
    assert (config.conditioner, config.architecture) == ("grid", model.config.architecture)
    assert (config.recipe.images, config.recipe.cool) == (48, 12)
    student = load(folder)
    assert student.about["run"] == "student" and student.fingerprint != model.fingerprint
    assert torch.equal(student.pixels.centre, model.pixels.centre)
    images = draw(student, [[(0.3, 0.3), (0.7, 0.6)]] * 2, steps=3)
    assert images.shape == (2, 16, 16, 3) and images.dtype == np.uint8
    assert len(list((folder / "samples").iterdir())) == 1
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert lines[-1]["images"] == 48 and lines[-1]["rate"] == 0

    # Once more does nothing; other settings are refused.
    before = (folder / "model.safetensors").read_bytes()
    composcope("distill", run, *flags)
    assert (folder / "model.safetensors").read_bytes() == before
    with pytest.raises(SystemExit):
        composcope("distill", run, *flags, "--reuse", 2)
    assert "walks" in capsys.readouterr().err


def test_minutes_become_states(run, capsys):
    counts = []
    for minutes in (1, 2):
        composcope("distill", run, "--minutes", minutes, "--dry-run")
        counts.append(json.loads(capsys.readouterr().out)["recipe"]["images"])
    assert counts[1] == pytest.approx(2 * counts[0], abs=1) and counts[0] > 100


def test_what_is_wrong_is_said_in_one_sentence(run, tmp_path, capsys):
    start(configure("color", "smoke", TINY | {"images": 8}), tmp_path / "color")
    capsys.readouterr()
    for words, sentence in (
        ((tmp_path / "color",), "these conditions have no places"),
        ((run, "--intervention", "none"), "there is no intervention 'none'"),
        ((run, "--images", 0), "images = 0"),
        ((run, "--batch", 0), "--batch 0"),
        ((run, "--minutes", -1), "--minutes -1"),
        ((run, "--steps", 0), "steps = 0"),
    ):
        with pytest.raises(SystemExit) as stop:
            composcope("distill", *words, "--out", tmp_path / "new")
        error = capsys.readouterr().err
        assert stop.value.code == 2 and sentence in error and error.count("\n") == 1, (words, error)
        assert not (tmp_path / "new").exists()


def test_colours_are_distilled_by_their_own_influence(tmp_path):
    start(configure("color", "smoke", TINY | {"images": 8}), tmp_path / "color")
    out = tmp_path / "new"
    composcope("distill", tmp_path / "color", "--intervention", "own", "--images", 16, "--out", out)
    assert Config.load(out / "config.json").teacher.radius is None
    assert load(out).conditioner.noun == "colour"


def test_what_is_practised_is_not_what_is_tested():
    """From none to twelve places, each number as often; each a function of the walk's number, none
    of an evaluation."""
    conditioner = LocationGrid(16)
    ask = asker(conditioner, 0)
    counts = np.array([int(ask(number).sum()) for number in range(400)])
    assert set(counts) == set(range(13))
    for k in (1, 4, 7, 10):
        share = 1 - k / 13
        assert abs((counts >= k).mean() - share) < 4 * (share * (1 - share) / 400) ** 0.5
    assert torch.equal(ask(7), ask(7)) and not torch.equal(ask(7), ask(8))
    assert ask(7).shape == (12, conditioner.features)
    evaluated = conditioner.ask(3, 20, 0, "random")
    practised = [conditioner.practise(3, ASKED, number) for number in range(20)]
    assert not set(evaluated) & set(practised)
    for number in range(20):
        places = conditioner.practise(int(ask(number).sum()), ASKED, number)
        assert torch.equal(ask(number).sum(0), conditioner([places], number)[0])


def test_places_near_the_horizon_are_practised_as_often_as_others():
    """The second of the paper's places is nearly at the far border of training scenes."""
    far = {}
    for name, choose in {
        "asked": partial(LocationGrid(16).choose, way="random"),
        "practised": LocationGrid(16).practise,
    }.items():
        places = np.array([p for i in range(300) for p in choose(3, seed=5, index=i)])
        far[name] = (np.abs(places - (0.65, 0.25)) < 0.05).all(1).mean()
    assert far["asked"] < 0.004 and 0.008 < far["practised"] < 0.04


def test_what_is_learned_of_some_conditions_costs_the_teacher_no_pass():
    """Asked for three places and for parts of them at one state, it passes four times."""
    passes = []

    def denoiser(x, sigma, cond):
        passes.append(len(x))
        return x * 0 + cond.sum(1)[:, None, None, None]

    conditioner = LocationGrid(4)
    parts = torch.from_numpy(conditioner.parts([(0.1, 0.1), (0.6, 0.4), (0.9, 0.9)], 0))
    kept = torch.tensor([[1.0, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 0]])
    x = torch.randn(1, 3, 8, 8).expand(4, -1, -1, -1)
    LocalConditions(denoiser, conditioner)(x, torch.ones(4), kept @ parts)
    assert passes == [4]
