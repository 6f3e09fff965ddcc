"""The commands as a user calls them: rows, figures, the table, and clear words about a wrong name."""

import json

import pytest
from PIL import Image

from composcope import cli
from composcope.results import read


def run(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["composcope", *map(str, words)])
    cli.main()


@pytest.mark.parametrize(("command", "study", "claim", "holds"), [("theory", "machines", "machine/ideal", True)])
def test_rows_and_figures(monkeypatch, capsys, tmp_path, command, study, claim, holds):
    out = tmp_path / "deep" / "rows.jsonl"
    run(monkeypatch, command, "--only", study, "--out", out, "--json")
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    rows = read(out)
    assert [row["claim"] for row in printed] == [row.claim for row in rows]
    (row,) = [row for row in rows if row.claim == claim]
    assert row.setting["holds"] == holds and row.setting["tolerance"] > 0
    with Image.open(out.with_name(f"{command}_{study}.png")) as image:
        assert image.width > 300


def test_the_table_and_a_second_run(monkeypatch, capsys, tmp_path):
    out = tmp_path / "rows.jsonl"
    run(monkeypatch, "theory", "--only", "feature_space", "--out", out)
    rows = read(out)
    run(monkeypatch, "theory", "--only", "feature_space", "--out", out)
    lines = [line for line in capsys.readouterr().out.splitlines() if "claim2/decreasing" in line]
    assert len(lines) == 2 and all("no" in line for line in lines)
    assert read(out) == rows and len(rows) == 8  # measured again: the same rows, not more of them


def test_an_unknown_study_is_named(monkeypatch, capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        run(monkeypatch, "theory", "--only", "lemma_9", "--out", tmp_path / "rows.jsonl")
    assert stop.value.code == 2
    assert "lemma_9" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("theory",), ("sim", "--circles")])
def test_a_folder_for_the_rows_is_refused_before_the_work(monkeypatch, capsys, tmp_path, words):
    with pytest.raises(SystemExit) as stop:
        run(monkeypatch, *words, "--out", tmp_path)
    assert stop.value.code == 2
    assert "rows go into a file" in capsys.readouterr().err and not list(tmp_path.iterdir())
