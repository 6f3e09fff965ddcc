"""Every experiment's own `main`, and the study behind it, at smoke size: a tiny run of the real
thing."""

from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from same_process import composcope

from composcope.cli import reproduce
from composcope.experiments import (
    centred_subject,
    color_features,
    label_policies,
    length_generalization,
    local_intervention,
    score_locality,
    score_machines,
)
from composcope.results import gather, read_rows, where
from composcope.runs.config import Config
from composcope.study.plan import plan
from composcope.study.schedule import Node, Study
from composcope.study.table import INTERVENTIONS

# One run of every kind: all, one and some labels, patches, colours.
RUNS = ["exp1", "exp2", "drop-one", "exp3l", "color"]
PROCESSES = "drop-one"  # of which every command is a process
# Ten steps are enough for the others: what is tested does not depend on how well they draw.
SHORT = ("--images", "160")


class Ended:
    """A node that was done before anybody looks."""

    def poll(self) -> int:
        return 0

    def terminate(self) -> None: ...


def blank(figure: Figure, file: Path, **settings: object) -> None:
    """In place of a drawing, which takes longer than all else that such a command does."""
    Image.new("RGB", (1, 1)).save(file, "PNG")


def do_here(node: Node, log: Path, keep_open: tuple[int, ...]) -> Ended:
    """The command of a node, without a process of its own."""
    log.parent.mkdir(parents=True, exist_ok=True)
    short = SHORT if node.command[0] == "train" else ()
    with open(log, "a") as out, redirect_stdout(out), redirect_stderr(out):
        composcope(*node.command, *short)
    return Ended()


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """The study of these runs: every experiment finds its runs done. One of them as `composcope
    reproduce --preset smoke` makes it, the others by the same commands in this process, with blank
    pictures."""
    folder = tmp_path_factory.mktemp("study")
    reproduce.main(reproduce.Args(preset="smoke", num=2, only=PROCESSES, out=folder))
    nodes = plan("smoke", folder / "smoke", RUNS, num=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("composcope.runs.data.MEASURED", 256)
        patch.setattr(Figure, "savefig", blank)
        assert Study(nodes, folder / "smoke").run(do_here, pause=0) == []
    return folder


def measured(rows) -> set[str]:
    return {row.what for row in rows}


def test_reproduce_does_every_node_once(out, capsys):
    nodes, done = plan("smoke", out / "smoke", RUNS, num=2), out / "smoke" / "done"
    assert {path.stem for path in done.iterdir()} == {node.name for node in nodes}
    k_max = where(
        gather([out / "smoke" / "results"]), what="length/k_max", rule="paper", snapshot="final"
    )
    assert {row.run for row in k_max} == set(RUNS)
    assert {row.max_K for row in k_max} == {4}
    assert {row.tolerance for row in k_max if row.run != "color"} == {0.1}
    before = {path: path.stat().st_mtime_ns for path in done.iterdir()}
    reproduce.main(reproduce.Args(preset="smoke", num=2, only=",".join(RUNS), out=out))
    assert f"{len(nodes)} nodes done" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in done.iterdir()} == before


def test_length_generalization(out, capsys):
    rows = length_generalization.main("smoke", out, num=2, runs=("exp1", "exp2"))
    assert "the paper: 9 in v1, 7 in v3" in capsys.readouterr().out
    assert {row.snapshot for row in rows} == {"early", "middle", "final"}
    assert {row.asked for row in where(rows, what="length/k_max", run="exp1")} == {
        "paper",
        "random",
    }
    assert (out / "smoke" / "results" / "exact.png").exists()
    with Image.open(out / "smoke" / "results" / "figure-1.png") as figure:
        assert figure.width > 5 * figure.height  # two runs, three images for each of four K


def test_score_locality_does_nothing_twice(out, capsys):
    marks = {path: path.stat().st_mtime_ns for path in (out / "smoke" / "done").iterdir()}
    rows = score_locality.main("smoke", out, num=2, runs=("exp1", "exp2"))
    assert "locality/conditional_locality" in measured(rows)
    assert {path: path.stat().st_mtime_ns for path in marks} == marks
    assert "over 6 models and snapshots" in capsys.readouterr().out
    assert (out / "smoke" / "results" / "scatter.png").exists()


def test_local_intervention(out, capsys):
    rows = local_intervention.main("smoke", out, num=2, runs=("exp2",))
    found = where(rows, what="length/k_max")
    found = {(row.intervention, row.radius) for row in found if row.intervention}
    assert {name for name, _ in found} == {one.name for one in INTERVENTIONS}
    assert {radius for name, radius in found if name == "local"} == {0.125, 0.1875, 0.275}
    # Exp2 with local conditions beside exp2.
    assert "places filled of 6" in capsys.readouterr().out


def test_label_policies(out):
    rows = label_policies.main("smoke", out, num=2, runs=("drop-one",))
    assert Config.load(out / "smoke" / "runs" / "drop-one" / "config.json").labels == "all_but_one"
    assert {(row.what, row.K) for row in rows} == {("length/k_max", None), ("length/drawn", 0)}


def test_color_features(out):
    rows = color_features.main("smoke", out, num=2, runs=("color",))
    assert "length/k_max" in measured(rows) and any(
        what.startswith("features/") for what in measured(rows)
    )
    assert {row.asked for row in where(rows, what="length/k_max")} == {"random"}


def test_centred_subject(out):
    pictures = centred_subject.centred(8, 32).astype(float)
    spread = np.abs(pictures - pictures[:, :1, :1]).mean((0, 3))  # how far from the ground's colour
    # The subject is in the middle.
    assert spread[10:22, 10:22].mean() > 3 * spread[:, [0, 1, 30, 31]].mean()
    rows = centred_subject.main("smoke", out, images=160, scenes=32, num=2)
    sides = [row.value for row in where(rows, what="locality/square", states="noised")]
    assert sides and all(1 <= side <= 31 for side in sides)


def test_score_machines(tmp_path):
    """With 600 training scenes already: nothing for nothing, and more places filled by the local
    conditional one."""
    out = tmp_path / "rows.jsonl"
    rows = score_machines.main(scenes=600, num=3, most=5, steps=6, out=out)
    found = {(row.run, row.K): row.value for row in where(rows, what="length/found")}
    assert found["local conditional machine", 0] == 0
    assert found["ideal machine", 5] <= 3 < found["local conditional machine", 5]
    # Section E.3.
    assert found["ideal one-label machine", 5] < 2 < found["local one-label machine", 5]
    # By two rules, and by places alone for the two that one label left objects out of.
    assert len(where(rows, what="length/k_max")) == 2 * 5 + 2 and read_rows(out) == rows
    drawn = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("K*.npz")}
    # Judged again, not drawn again.
    again = score_machines.main(scenes=600, num=3, most=5, steps=6, out=out)
    assert [(row.key, row.value) for row in again] == [(row.key, row.value) for row in rows]
    assert {path: path.stat().st_mtime_ns for path in drawn} == drawn and len(drawn) == 6 * 5
    assert (tmp_path / "rows" / "exact.png").exists()
