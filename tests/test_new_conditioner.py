"""A kind of condition is one class: shapes, ours, and one from outside, from training to what is
measured of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from composcope.cli import main
from composcope.errors import InputError
from composcope.results import read_rows, where
from composcope.runs import load
from composcope.scenes.condition import CONDITIONERS

# The example of the page on conditioners: how many large and small objects there are.
PAGE = Path(__file__).parents[1] / "docs" / "conditioners.md"
OUTSIDE = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[0]


@pytest.fixture
def command(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["composcope", *map(str, words)])
        main()

    return run


def test_shapes_are_trained_drawn_and_counted(command, tmp_path):
    command(
        "train",
        "exp1",
        "--conditioner",
        "shape",
        "--preset",
        "smoke",
        "--images",
        160,
        "--out",
        "shapes",
    )
    command("sample", "shapes", "--asked", "cube sphere", "-n", 2, "--steps", 2)
    assert (tmp_path / "sheet.png").exists()
    command("evaluate", "shapes", "--num", 2, "--max", 12, "--steps", 2)
    rows = read_rows("results/evaluate.jsonl")
    assert {row.K for row in where(rows, what="length/exact")} == {0, 1, 2, 3}  # there are three
    assert {(row.run, row.asked, row.tolerance) for row in where(rows, what="length/k_max")} == {
        ("shapes", "random", None)
    }


def test_shapes_are_measured_inside(command):
    command(
        "train",
        "exp1",
        "--conditioner",
        "shape",
        "--preset",
        "smoke",
        "--images",
        160,
        "--out",
        "shapes",
    )
    command("locality", "shapes", "--noise-levels", 1, "--num", 1)
    rows = read_rows("results/locality.jsonl")
    assert {
        row.condition for row in where(rows, what="locality/influence")
    }  # of every shape asked for
    assert not where(rows, what="locality/near_share")  # a shape has no place to be near to


def test_one_from_outside_is_imported_when_it_is_named_and_only_then(command, tmp_path):
    (tmp_path / "my_sizes.py").write_text(
        OUTSIDE + "\nimport pathlib; pathlib.Path('imported').touch()\n"
    )
    name = "my_sizes:SizeCounts"
    words = ("exp1", "--conditioner", name, "--preset", "smoke", "--images", 160, "--out", "sizes")
    composcope("train", *words, cwd=tmp_path)
    (tmp_path / "imported").unlink()

    done = composcope("sample", "sizes", "--asked", "large", cwd=tmp_path, code=2)
    assert (
        f"the conditioner {name} comes from outside" in done.stderr and done.stderr.count("\n") == 1
    )
    assert not (tmp_path / "imported").exists()

    composcope(
        "sample",
        "sizes",
        "--asked",
        "large small",
        "-n",
        "1",
        "--steps",
        "2",
        "--conditioner",
        name,
        cwd=tmp_path,
    )
    assert (tmp_path / "imported").exists() and (tmp_path / "sheet.png").exists()
    with pytest.raises(InputError, match="comes from outside"):
        load(tmp_path / "sizes")
    try:
        assert load(tmp_path / "sizes", conditioner=name).conditioner.noun == "size"
    finally:
        CONDITIONERS.pop(name, None)


def composcope(*words, cwd: Path, code=0):
    command = [sys.executable, "-c", "from composcope.cli import main; main()", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no_such_module:Sizes", "there is no conditioner 'no_such_module:Sizes'"),
        ("composcope.errors:Sizes", "there is no conditioner 'composcope.errors:Sizes'"),
        ("composcope.errors:InputError", "is no conditioner"),
        (":Sizes", "there is no conditioner ':Sizes'"),
    ],
)
def test_what_is_no_conditioner_is_one_sentence(command, capsys, tmp_path, name, sentence):
    with pytest.raises(SystemExit) as stop:
        command("train", "exp1", "--conditioner", name, "--preset", "smoke", "--out", "run")
    error = capsys.readouterr().err
    assert stop.value.code == 2 and sentence in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()
