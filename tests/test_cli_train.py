"""`composcope train`: what the flags become, and one clear sentence for what is wrong."""

import json

import pytest
from same_process import composcope

from composcope.runs.config import configure


def test_flags_become_the_configuration(capsys):
    flags = ("--preset", "smoke", "--labels", "random", "--objects", 1, 5, "--lr", 0.5)
    flags = (*flags, "--seed", 3, "--smooth", "True")
    composcope("train", "exp2", "--dry-run", *flags)
    said = json.loads(capsys.readouterr().out)
    assert (said["labels"], said["objects"], said["conditioner"]) == ("random", [1, 5], "grid")
    recipe, smooth = said["recipe"], said["architecture"]["smooth"]
    assert (recipe["lr"], recipe["seed"], smooth) == (0.5, 3, True)


def test_what_is_wrong_is_said_in_one_sentence(capsys, tmp_path):
    for words, sentence in (
        (("exp7",), "there is no experiment 'exp7'; the experiments are exp1"),
        (("exp1", "--preset", "huge"), "there is no preset 'huge'"),
        (("images", "--preset", "smoke"), "needs --data"),
        (("color", "--net", "local", "--preset", "smoke"), "a patch-local net needs locations"),
        (("exp1", "--objects", 3, 1, "--preset", "smoke"), "objects are a range"),
        (("images", "--preset", "smoke", "--data", tmp_path / "none.npz"), "none.npz"),
    ):
        with pytest.raises(SystemExit) as stop:
            composcope("train", *words, "--out", tmp_path / "run")
        error = capsys.readouterr().err
        assert stop.value.code == 2 and sentence in error and error.count("\n") == 1, (words, error)
        assert not (tmp_path / "run" / "config.json").exists()


def test_help_shows_the_settings_of_the_experiment_and_no_none(capsys):
    for words, shown in (((), "default: global"), (("exp2l",), "default: local")):
        with pytest.raises(SystemExit) as stop:
            composcope("train", *words, "--help")
        text = capsys.readouterr().out
        assert stop.value.code == 0 and shown in text and "{None}" not in text
        assert all(
            f"--{name}" in text for name in ("images", "seed", "objects", "optimizer", "view")
        )


def test_another_net_brings_its_own_architecture(capsys):
    composcope("train", "exp2l", "--dry-run", "--net", "global", "--width", 32)
    assert json.loads(capsys.readouterr().out) == json.loads(
        configure("exp2", changes={"width": 32}).json()
    )


def test_help_opens_with_a_line_to_paste(capsys):
    with pytest.raises(SystemExit):
        composcope("train", "--help")
    assert "composcope train exp1 --preset laptop --out runs/exp1" in capsys.readouterr().out
