"""The commands as a user calls them: rows, curves, figures, the table, and clear words about a
wrong name."""

import json
import math

import pytest
from PIL import Image
from same_process import composcope

from composcope.results import Estimate, only, read_rows
from composcope.theory.claim import Claim, Toy
from composcope.theory.measure import TOYS


def test_rows_curves_and_figures(capsys, tmp_path):
    out = tmp_path / "deep" / "rows.jsonl"
    composcope("theory", "--only", "machines", "--out", out, "--json")
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    rows = read_rows(out)
    assert [row["what"] for row in printed] == [row.what for row in rows]
    row = only(rows, what="theory/machine/ideal")
    assert row.holds and row.predicted == 0 and row.tolerance > 0 and row.rule == "=" and row.claim
    with Image.open(out.with_suffix("") / "machines.png") as image:
        assert image.width > 300
    assert (out.with_suffix("") / "machines.npz").exists()


def test_the_table_and_a_second_composcope(capsys, tmp_path):
    out = tmp_path / "rows.jsonl"
    composcope("theory", "--only", "feature_space", "--out", out)
    rows = read_rows(out)
    composcope("theory", "--only", "feature_space", "--out", out)
    lines = [line for line in capsys.readouterr().out.splitlines() if "claim2/decreasing" in line]
    assert len(lines) == 2 and all("no" in line for line in lines)
    again = [(row.what, row.value, row.holds) for row in read_rows(out)]
    # The same rows, not more of them.
    assert again == [(row.what, row.value, row.holds) for row in rows]


def test_a_claim_that_came_out_as_no_number_is_shown_and_does_not_hold(
    capsys, tmp_path, monkeypatch
):
    claims = [
        Claim("nan", "it is nothing", 0.0, math.nan),
        Claim("half", "it is", 0, Estimate(1, 0)),
    ]
    monkeypatch.setitem(TOYS["theory"], "lemma_1", lambda: Toy(claims))
    composcope("theory", "--only", "lemma_1", "--out", tmp_path / "rows.jsonl")
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "theory/nan" in line)
    assert "not finite" in line and line.split()[-1] == "no"


def test_an_unknown_toy_is_named(capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        composcope("theory", "--only", "lemma_9", "--out", tmp_path / "rows.jsonl")
    assert stop.value.code == 2
    assert "lemma_9" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("theory",), ("sim", "--circles")])
def test_a_folder_for_the_rows_is_refused_before_the_work(capsys, tmp_path, words):
    with pytest.raises(SystemExit) as stop:
        composcope(*words, "--out", tmp_path)
    assert stop.value.code == 2
    assert "rows go into a file" in capsys.readouterr().err and not list(tmp_path.iterdir())
