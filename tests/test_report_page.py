"""The page says what the rows say, carries its pictures inside, and does not know the result beforehand."""

import sys

import pytest
from PIL import Image

from composcope.report.page import Picture, numbers, page, summary, verdict
from composcope.results import Row, add


def k_max(value, low, high, paper, run="exp1"):
    return Row("length/k_max_paper", run, value, {"snapshot": "final"}, low=low, high=high, paper=paper)


@pytest.mark.parametrize(
    ("text", "values"), [("9 (v3: 7)", [9, 7]), ("1+(0-2) (v3: 2)", [1, 2]), ("(v3: 3)", [3]), ("9+(0-2)", [9])]
)
def test_the_papers_values_are_read(text, values):
    assert numbers(text) == values


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (k_max(7, 6, 8, "9 (v3: 7)"), "agrees"),
        (k_max(5, 4, 6, "9 (v3: 7)"), "ours is lower"),
        (k_max(4, 3, 4, "1+(0-2) (v3: 2)"), "ours is higher"),
        (k_max(4, 3, 4, None), "not in the paper"),
    ],
)
def test_the_comparison_is_computed(row, words):
    assert verdict(row)[1] == words


def test_the_summary_follows_the_rows():
    rows = [k_max(7, 6, 8, "9 (v3: 7)"), k_max(2, 1, 2, "1+(0-2) (v3: 2)", run="exp2")]
    lines = summary(rows)
    assert "up to 7 [6, 8] objects" in lines[0] and "agrees" in lines[0]
    assert "up to 2 [1, 2] objects" in lines[1]
    assert "not measured yet" in lines[2]


def test_the_page_is_one_file(tmp_path):
    Image.new("RGB", (4, 4), "red").save(tmp_path / "a.png")
    text = page([k_max(7, 6, 8, "9")], [Picture("length", tmp_path / "a.png", "a <sheet>")], {"train exp1": 50.0})
    assert "data:image/png;base64," in text and "a &lt;sheet&gt;" in text
    assert "http" not in text.replace("http-equiv", "") and "50.0 min" in text


def test_claims_of_the_theory_stand_in_their_sections():
    said = {"says": "KL <= bound", "rule": "<=", "predicted": 1.0, "tolerance": 0.0}
    rows = [
        Row("lemma2/bound", "exact", 0.55, said | {"holds": True}),
        Row("swing_by/depth_3", "exact", 0.36, said | {"holds": False}, low=0.27, high=0.46),
    ]
    theory, sim = page(rows, [], {}).split("<h2>")[4:6]
    assert "KL &lt;= bound" in theory and "<td>&lt;= 1</td>" in theory and ">holds<" in theory
    assert "0.36 [0.27, 0.46]" in sim and "does not hold" in sim


def test_the_command_gathers_rows_and_pictures(tmp_path, monkeypatch, capsys):
    from composcope.cli import main

    results = tmp_path / "results"
    add(results / "evaluate.jsonl", [k_max(6, 5, 7, "9 (v3: 7)", run="of-this-test")])
    (results / "evaluate").mkdir()
    Image.new("RGB", (4, 4), "red").save(results / "evaluate" / "sheet.png")
    words = ["report", "--results", str(results), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["composcope", *words])
    main()
    text = (tmp_path / "out" / "index.html").read_text()
    assert "of-this-test" in text and "evaluate / sheet" in text
    assert "index.html" in capsys.readouterr().out
