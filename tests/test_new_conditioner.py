"""A kind of condition is one class: shapes, ours, and one from outside, from training to what is
measured of it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from same_process import composcope, typed

from composcope.cli import report
from composcope.errors import InputError
from composcope.explore.stage import Models
from composcope.report.features import level_matrices
from composcope.results import gather, read_rows, where
from composcope.results.arrays import read_arrays
from composcope.runs import load
from composcope.runs.training import check_ship
from composcope.scenes.condition import CONDITIONERS
from composcope.scenes.scene import SHAPES
from composcope.study.cost import distilled_states

# The example of the page on conditioners: how many large and small objects there are.
PAGE = Path(__file__).parents[1] / "docs" / "conditioners.md"
OUTSIDE = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[0]


@pytest.fixture(scope="module")
def shapes(tmp_path_factory) -> Iterator[Path]:
    """A folder to work in, with a model of shapes of smoke size."""
    folder = tmp_path_factory.mktemp("shapes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        typed("composcope train exp1 --conditioner shape --preset smoke --images 160 --out shapes")
        yield folder


def test_shapes_are_drawn_and_counted(shapes):
    typed('composcope sample shapes --asked "cube sphere" -n 2 --steps 2')
    assert (shapes / "sheet.png").exists()
    typed("composcope evaluate shapes --num 2 --max 12 --steps 2")
    rows = read_rows("results/evaluate.jsonl")
    assert {row.K for row in where(rows, what="length/exact")} == {0, 1, 2, 3}  # there are three
    assert {(row.run, row.asked, row.tolerance) for row in where(rows, what="length/k_max")} == {
        ("shapes", "random", None)
    }


def test_shapes_are_measured_inside(shapes):
    typed("composcope locality shapes --noise-levels 1 --num 1")
    rows = read_rows("results/locality.jsonl")
    # Of every shape that was asked for; a shape has no place to be near to.
    assert {row.condition for row in where(rows, what="locality/influence")} <= {*SHAPES}
    assert where(rows, what="locality/influence") and not where(rows, what="locality/near_share")


def test_features_of_shapes(shapes):
    typed("composcope features shapes --num 4")
    (kept,) = Path("results/features").glob("*/matrices.npz")
    arrays = read_arrays(kept)
    assert {*arrays["concepts"]} == {*SHAPES}
    between = where(read_rows("results/features.jsonl"), what="features/between", run="shapes")
    layers = {row.layer for row in between if row.index is not None}
    matrices = level_matrices(arrays, "high")
    assert layers and layers <= {*matrices}
    for row in where(between, level="high", layer=list(layers)):
        apart = matrices[str(row.layer)][~np.eye(len(SHAPES), dtype=bool)]
        assert row.value == pytest.approx(apart.mean(), abs=1e-5)


def test_shapes_are_reported(shapes, monkeypatch):
    """After the tests above; nothing else is on the page."""
    monkeypatch.setattr(report, "SHIPPED", shapes / "nothing")
    composcope("report")
    page = Path("report/index.html").read_text(encoding="utf-8")
    rooms = [row.what.partition("/")[0] for row in gather(["results"])]
    for room in ("length", "locality", "features"):
        assert f"shapes: {rooms.count(room):,} numbers" in page
    for line in ("evaluate shapes", "locality shapes", "features shapes"):
        assert f"<code>composcope {line}" in page
    assert "shapes: cosine of every two concepts" in page
    assert "shapes: what pixels look at" in page


@pytest.fixture
def here(tmp_path, monkeypatch) -> Iterator[Path]:
    """A folder to work in; the conditioners of its modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*CONDITIONERS}
    yield tmp_path
    for name in {*CONDITIONERS} - before:
        del CONDITIONERS[name]
        sys.modules.pop(name.partition(":")[0], None)


def test_one_from_outside_is_imported_when_it_is_named_and_only_then(here, capsys):
    (here / "my_sizes.py").write_text(
        OUTSIDE + "\nimport pathlib; pathlib.Path('imported').touch()\n"
    )
    name = "my_sizes:SizeCounts"
    words = ("exp1", "--conditioner", name, "--preset", "smoke", "--images", 160, "--out", "sizes")
    command = [sys.executable, "-m", "composcope", "train", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (here / "imported").unlink()

    with pytest.raises(SystemExit, match="2"):
        composcope("sample", "sizes", "--asked", "large")
    said = capsys.readouterr().err
    assert said.startswith(f"composcope: the conditioner {name} comes from outside")
    assert said.count("\n") == 1
    with pytest.raises(InputError, match="comes from outside"):
        load("sizes")
    assert not (here / "imported").exists()

    asked = ("--asked", "large small", "-n", "1", "--steps", "2")
    composcope("sample", "sizes", *asked, "--conditioner", name)
    assert (here / "imported").exists() and (here / "sheet.png").exists()
    assert load("sizes", conditioner=name).conditioner.noun == "size"


# Conditioners with a twist: one whose names have spaces, one that the detector knows nothing of.
LOOKS = """
from dataclasses import replace
from composcope.scenes.condition import Names

class Looks(Names):
    noun, like, names = "look", "red cube, blue cube", ("red cube", "blue cube", "other look")
    def read(self, thing, place):
        look = f"{thing.color} {thing.shape}"
        return look if look in self.names else "other look"
    def dress(self, thing, name):
        return replace(thing, color="red")

class Materials(Names):
    noun, like, names = "material", "rubber metal", ("rubber", "metal", "glass")
    def read(self, thing, place):
        return thing.material
    def dress(self, thing, name):
        return replace(thing, material=name)
"""


@pytest.fixture
def looks(here) -> Path:
    (here / "my_looks.py").write_text(LOOKS)
    return here


def test_names_with_spaces_are_asked_with_commas_and_every_command_takes_the_class(looks, capsys):
    name = "my_looks:Looks"
    more = ("--preset", "smoke", "--images", 160, "--conditioner", name)
    composcope("train", "exp1", *more, "--out", looks / "my run")
    # What is printed can be pasted: it runs as it is.
    command = capsys.readouterr().out.splitlines()[-1].partition("next: ")[2]
    assert command == f"composcope evaluate '{looks / 'my run'}' --conditioner {name}"
    run = ("my run", "--conditioner", name)
    composcope("sample", *run, "--asked", "red cube, blue cube", "-n", 1, "--steps", 2)
    composcope("features", *run, "--num", 2)
    assert where(read_rows("results/features.jsonl"), run="my run")
    # A class of as many features is not the one that the run was trained with.
    with pytest.raises(InputError, match="the conditioner of this run is my_looks:Looks, not my_"):
        load("my run", conditioner="my_looks:Materials")


def test_one_in_a_file_is_known_to_training_its_workers_and_the_explorer(looks):
    (looks / "my own").mkdir()
    name = f"{looks / 'my own' / 'looks.py'}:Looks"
    (looks / "my own" / "looks.py").write_text(LOOKS)
    more = ("--preset", "smoke", "--images", 160, "--conditioner", name, "--workers", 1)
    composcope("train", "exp1", *more, "--out", "run")
    assert load("run", conditioner=name).conditioner.noun == "look"
    CONDITIONERS.pop(name)
    (left_out,) = Models.load(["run"]).left_out
    assert "comes from outside" in left_out
    models = Models.load(["run", "color"], "my_looks:Looks")
    assert [model.noun for model in models.described] == ["look", "colour"] and not models.left_out
    assert distilled_states(load("run", conditioner="my_looks:Looks").config, 1, 2)
    with pytest.raises(InputError, match=r"--ship mine: .* would not ship with it"):
        check_ship("mine", name)


def test_an_error_in_a_class_from_outside_is_told_with_its_line(looks, capsys):
    name = ("--conditioner", "my_looks:Materials")
    composcope("train", "exp1", "--preset", "smoke", "--images", 160, *name, "--out", "run")
    line = LOOKS.splitlines().index("        return thing.material") + 1
    with pytest.raises(SystemExit) as stop:
        composcope("evaluate", "run", *name, "--num", 1, "--max", 1, "--steps", 2)
    said = f"my_looks.py, line {line}: AttributeError: 'Found' object has no attribute 'material'"
    assert stop.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no_such_module:Sizes", "there is no conditioner 'no_such_module:Sizes'"),
        ("composcope.errors:Sizes", "there is no conditioner 'composcope.errors:Sizes'"),
        ("composcope.errors:InputError", "is no conditioner"),
        (":Sizes", "there is no conditioner ':Sizes'"),
        ("my_typo.py:Sizes", "(SyntaxError: '(' was never closed (my_typo.py, line 1))"),
        ("nowhere.py:Sizes", "there is no file nowhere.py"),
        ("my_typo.py", "none, FILE.py:Class or package.module:Class"),
        ("my_typo.py:", "there is no conditioner 'my_typo.py:': give FILE.py:Class or package"),
        ("composcope.scenes.condition:Names", "it has no dress, read"),
        ("my_typo:Sizes", "(SyntaxError: '(' was never closed (my_typo.py, line 1))"),
        ("my_slip:Sizes", "(NameError: name 'Names' is not defined)"),
    ],
)
def test_what_is_no_conditioner_is_one_sentence(monkeypatch, capsys, tmp_path, name, sentence):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_typo.py").write_text("class Sizes(")
    (tmp_path / "my_slip.py").write_text("class Sizes(Names): pass")
    with pytest.raises(SystemExit) as stop:
        composcope("train", "exp1", "--conditioner", name, "--preset", "smoke", "--out", "run")
    error = capsys.readouterr().err
    assert stop.value.code == 2 and sentence in error and error.count("\n") == 1
    assert not (tmp_path / "run").exists()
