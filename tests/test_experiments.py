"""Every experiment's own `main`, and the study behind it, at smoke size: a tiny run of the real thing."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from composcope.cli import reproduce
from composcope.results import read
from composcope.runs.config import Config
from composcope.study.plan import RUNS, plan
from composcope.experiments import (
    centred_subject,
    color_features,
    label_policies,
    length_generalization,
    local_intervention,
    score_locality,
    score_machines,
)


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """The whole study, as `composcope reproduce --preset smoke` makes it: every experiment finds its runs done."""
    folder = tmp_path_factory.mktemp("study")
    reproduce.main(reproduce.Args(preset="smoke", num=2, out=folder))
    return folder


def claims(rows) -> set[str]:
    return {row.claim for row in rows}


def test_reproduce_does_every_node_once(out, capsys):
    nodes, done = plan("smoke", out / "smoke", num=2), out / "smoke" / "done"
    assert {path.stem for path in done.iterdir()} == {node.name for node in nodes}
    rows = [row for path in (out / "smoke" / "results").glob("*.jsonl") for row in read(path)]
    assert {row.run for row in rows if row.claim == "length/k_max_paper"} >= {run.name for run in RUNS}
    before = {path: path.stat().st_mtime_ns for path in done.iterdir()}
    reproduce.main(reproduce.Args(preset="smoke", num=2, out=out))
    assert f"{len(nodes)} nodes done" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in done.iterdir()} == before


def test_length_generalization(out):
    rows = length_generalization.main("smoke", out, num=2, runs="exp1")
    final = [row for row in rows if row.claim == "length/k_max_paper" and row.setting["snapshot"] == "final"]
    assert [row.paper for row in final] == ["9 (v3: 7)"]
    assert {row.setting["snapshot"] for row in rows} == {"early", "middle", "final"}
    assert (out / "smoke" / "results" / "evaluate-all" / "exact.png").exists()
    with Image.open(out / "smoke" / "results" / "evaluate-all" / "figure-1.png") as figure:
        assert figure.size == (8 * (128 + 4) + 4, 5 * (128 + 4) + 4)  # five runs, two images for each of four K


def test_score_locality_does_nothing_twice(out):
    marks = {path: path.stat().st_mtime_ns for path in (out / "smoke" / "done").iterdir()}
    rows = score_locality.main("smoke", out, num=2, runs="exp1")
    assert "locality/conditional_locality" in claims(rows)
    assert {path: path.stat().st_mtime_ns for path in marks} == marks


def test_local_intervention(out):
    rows = local_intervention.main("smoke", out, num=2, runs="exp2")
    ways = ("local", "narrow", "wide", "smooth", "annealed", "own", "composed")
    assert {row.run for row in rows} == {"exp2", *(f"exp2+{way}" for way in ways)}


def test_label_policies(out):
    rows = label_policies.main("smoke", out, num=2, runs="drop-one")
    assert Config.load(out / "smoke" / "runs" / "drop-one" / "config.json").labels == "all_but_one"
    assert claims(rows) == {"length/k_max_paper", "length/none_asked"}


def test_color_features(out):
    rows = color_features.main("smoke", out, num=2, runs="color")
    assert "length/k_max_paper" in claims(rows) and any(claim.startswith("features/") for claim in claims(rows))
    took = json.loads((out / "smoke" / "done" / "train color.json").read_text())
    assert took["minutes"] > 0 and read(out / "smoke" / "results" / "evaluate-color.jsonl")


def test_centred_subject(out):
    pictures = centred_subject.centred(8, 32).astype(float)
    spread = np.abs(pictures - pictures[:, :1, :1]).mean((0, 3))  # how far from the ground's colour
    assert spread[10:22, 10:22].mean() > 3 * spread[:, [0, 1, 30, 31]].mean()  # the subject is in the middle
    rows = centred_subject.main("smoke", out, images=160, scenes=32, num=2)
    sides = [row.value for row in rows if row.claim == "locality/square"]
    assert sides and all(1 <= side <= 31 for side in sides)


def test_score_machines(tmp_path):
    """With 600 training scenes already: nothing for nothing, and more places filled by the local conditional one."""
    out = tmp_path / "rows.jsonl"
    rows = score_machines.main(scenes=600, num=3, most=5, steps=6, out=out)
    found = {(row.run, row.setting["K"]): row.value for row in rows if row.claim == "length/found"}
    assert found["local conditional machine", 0] == 0
    assert found["ideal machine", 5] <= 3 < found["local conditional machine", 5]
    assert found["ideal one-label machine", 5] < 2 < found["local one-label machine", 5]  # section E.3
    assert len([row for row in rows if row.claim.startswith("length/k_max")]) == 2 * 5 and read(out) == rows
    drawn = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("K*.npz")}
    assert score_machines.main(scenes=600, num=3, most=5, steps=6, out=out) == rows  # judged again, not drawn again
    assert {path: path.stat().st_mtime_ns for path in drawn} == drawn and len(drawn) == 6 * 5
    assert (tmp_path / "rows" / "sheet.png").exists() and (tmp_path / "rows" / "exact.png").exists()
