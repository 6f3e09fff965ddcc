"""The page says what the rows say, carries its pictures inside, and does not know the result beforehand."""

import base64
import io
import re
import sys

import pytest
from PIL import Image

from composcope.cli.report import expected, gathered
from composcope.report.findings import EFFECTS, Expected, Study, Table, compared, effects, numbers, summary, verdict
from composcope.report.locality import dots
from composcope.report.page import LARGEST, PARTS, Picture, Time, page
from composcope.results import Row, add

FINAL = {"snapshot": "final", "conditions": "paper", "num": 64}


def k_max(value, low, high, paper, run="exp1", **setting):
    return Row("length/k_max_paper", run, value, {**FINAL, **setting}, low=low, high=high, paper=paper)


def local(run, value, low, high):
    setting = {"snapshot": "final", "chance": 0.14, "trained": 3}
    return Row("locality/conditional_locality", run, value, setting, low=low, high=high)


def lines(text, part):
    """The lines of the first table of a part, each a list of its cells' words."""
    found = re.search(rf"<h2 id={part}>.*?<table>(.*?)</table>", text, re.S)
    assert found, part
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in re.findall("<tr>(.*?)</tr>", found[1])]


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
        (k_max(3, 3, 3, "9 (v3: 7)", max=3), "not asked further"),
        (k_max(3, 3, 3, "9 (v3: 7)", max=4), "ours is lower"),
        (k_max(4, 3, 4, None), "not in the paper"),
        (None, "not measured"),
    ],
)
def test_the_comparison_is_computed(row, words):
    assert verdict(row)[1] == words


def test_runs_are_compared_at_one_tolerance():
    """That of the other run, not any other."""
    rows = [k_max(1, 0, 5, None, "exp2l", grid=16), k_max(1, 0, 1, None, "exp2", grid=10)]
    rows += [k_max(9, 2, 9, None, f"exp2l within 1/{grid}", grid=grid) for grid in (10, 4)]
    table = next(part for part in effects(Study(rows)) if isinstance(part, Table))
    told = {line[2]: line[1][1] + ": " + line[3] for line in table.lines}
    words = "K_max of exp2l within 1/10 9 [2, 9], of exp2 1 [0, 1]"
    assert told["A patch-local network composes where the global one did not"] == f"yes, intervals apart: {words}"


def test_one_line_tells_of_one_evaluation():
    first = [Row("length/found", "exp1", 9.0, {**FINAL, "K": 9}), k_max(9, 9, 9, None)]
    study = Study([*first, k_max(2, 2, 2, None, num=8), Row("length/found", "exp1", 2.0, {**FINAL, "num": 8, "K": 3})])
    assert study.of("exp1")["length/k_max_paper"].value == 2 and study.there("exp1") is None


def test_the_correlation_is_told_over_all_and_over_those_trained_alike():
    def spearman(run, value, dots):
        return Row("locality/spearman_strict", run, value, {"dots": dots}, low=value - 0.1, high=value + 0.1)

    last = summary(Study([spearman("all", 0.5, 14), spearman("1-3 objects", 0.8, 12)]))[-1]
    assert "over 14 models and snapshots is 0.5 [0.4, 0.6] by the strict rule" in last
    assert "over 12 models and snapshots trained on 1-3 objects is 0.8 [0.7, 0.9] by the strict rule" in last
    assert "1-3 objects" not in summary(Study([spearman("all", 0.5, 12), spearman("1-3 objects", 0.5, 12)]))[-1]


def test_a_dot_has_the_tolerance_of_the_others():
    rows = [k_max(9, 2, 9, None, "exp2l within 1/10", grid=10), k_max(1, 0, 5, None, "exp2l", grid=16)]
    rows += [k_max(12, 12, 12, None, "exp2l within 1/2", grid=2), local("exp2l", 1.0, 1.0, 1.0)]
    rows += [k_max(1, 0, 1, None, run, grid=10) for run in ("exp1", "exp2")]
    assert [dot.gain for dot in dots(rows, "paper")] == [(6, -1, 6)]


def test_one_run_is_above_another_only_if_it_is():
    seven, two = k_max(7, 6, 8, None), k_max(2, 1, 2, None)
    assert compared(seven, two)[1] == "yes, intervals apart"
    assert compared(seven, k_max(5, 3, 6, None))[1] == "yes, but intervals overlap"
    assert compared(two, seven)[1] == compared(two, two)[1] == "no"
    assert compared(seven, None)[1] == "not measured"


def test_the_summary_follows_the_rows():
    spearman = Row("locality/spearman_strict", "all", 0.81, {"dots": 15}, low=0.5, high=0.9)
    rows = [k_max(7, 6, 8, "9 (v3: 7)"), k_max(2, 1, 2, "1+(0-2) (v3: 2)", "exp2"), local("exp1", 0.9, 0.8, 0.95)]
    rows += [Row("length/found", "exp1", there, {**FINAL, "K": K}) for K, there in ((9, 8.5), (10, 9.1))]
    said = summary(Study([*rows, spearman]))
    assert len(said) == 5
    assert "up to 7 [6, 8] objects" in said[0] and "agrees), and 8.5 of nine." in said[0]
    assert "up to 2 [1, 2] objects" in said[1] and "(exp3): not measured" in said[1]
    assert "exp1 0.9 [0.8, 0.95], exp2l not measured" in said[4] and "over 15 models and snapshots is 0.81" in said[4]
    assert summary(Study(rows))[4].endswith("is not measured (it takes three models that differ in it).")


def test_every_finding_is_a_line_and_counted():
    rows = [k_max(7, 6, 8, "9"), k_max(2, 1, 2, "1", "exp2"), k_max(8, 7, 8, "3", "exp3"), local("exp1", 0.9, 0.8, 1.0)]
    nine = {**FINAL, "K": 9}
    rows += [
        Row("length/found", run, value, nine) for run, value in (("exp1", 8.5), ("exp2", 9.0), ("exp2+local", 8.0))
    ]
    text = page(Study(rows))
    found = lines(text, "findings")
    assert found[1][4] == "no: 8.5, 9" and found[2][4] == ""
    assert len(found) == 1 + len(EFFECTS)
    assert found[1][1] == "yes, intervals apart" and found[1][3] == "K_max of exp1 7 [6, 8], of exp2 2 [1, 2]"
    assert found[2][1] == "no" and found[-1][1] == "not measured"
    counted = f"Not measured: {len(EFFECTS) - 2}; yes, intervals apart: 1; no: 1."
    assert f"Are the {len(EFFECTS)} findings seen here? {counted}" in text


def test_the_tables_hold_each_run_once_with_the_papers_value():
    study = {one.run: one for one in expected()}
    assert study["exp1-five"] == Expected("exp1-five", "1-5 objects, grid, all labels", "10")
    assert study["exp2l-one"] == Expected("exp2l-one", "1 object, grid, one label, patch-local", "6 (v3: 5)")
    mended = {**FINAL, "intervention": "local"}
    rows = [
        k_max(7, 6, 8, "9 (v3: 7)"),
        Row("length/k_max_strict", "exp1", 5, FINAL, low=4, high=6),
        Row("length/k_max_paper_extra", "exp1", "+(0-2)", FINAL),
        Row("length/none_asked", "exp1", "0-1", FINAL, paper="0"),
        Row("length/found", "exp1", 8.5, {**FINAL, "K": 9}, low=8.0, high=8.8),
        k_max(1, 0, 1, "9 (v3: 7)", snapshot="early"),
        k_max(2, 2, 2, "9 (v3: 7)", conditions="random"),
        k_max(6, 5, 7, None, "exp2+local", intervention="local"),
        Row("length/evaluations", "exp2+local", 13, {**mended, "K": 12}),
        k_max(4, 4, 4, None, "mine"),
    ]
    text = page(Study(rows, list(study.values()), frozenset({("length", "exp1")})))
    first = lines(text, "table1")
    assert [line[0] for line in first[1:]] == [run for run in study if run not in ("random", "drop-one")]
    assert first[1] == [
        *("exp1", "7 [6, 8]", "9 (v3: 7)", "agrees", "1-3 objects, grid, all labels"),
        *("5 [4, 6]", "8.5 [8, 8.8]", "0-2", "0-1 (paper: 0)", "64", "shipped"),
    ]
    assert first[2][:4] == ["exp2", "not measured", "1+(0-2) (v3: 2)", "not measured"]
    assert [line[0] for line in lines(text, "table2")[1:]] == ["exp1", "random", "drop-one", "exp2"]
    repaired = {line[0]: line for line in lines(text, "mended")}
    assert repaired["exp2+local"][-3:] == ["13 at K = 12", "64", "here"]
    assert repaired["exp2+local"][4] == "1-3 objects, grid, one label"
    assert [line[:2] for line in lines(text, "others")[1:]] == [["mine", "4 [4, 4]"]]
    assert "Agrees: exp1; not measured: exp2, " in text


def test_locality_has_a_line_a_run_and_says_the_correlation():
    early = Row("locality/conditional_locality", "exp1", 0.3, {"snapshot": "early", "chance": 0.14}, low=0.2, high=0.4)
    at = {"snapshot": "final", "sigma": 1.0}
    squares = [Row("locality/square", run, side, at) for run, side in (("exp1", 5.0), ("exp1", 9.0), ("cifar10", 20.0))]
    squares.append(Row("locality/square", "exp1", 31.0, {"snapshot": "early", "sigma": 1.0}))
    text = page(Study([early, local("exp1", 0.9, 0.8, 1.0), *squares]))
    head, exp1, exp2l, *_, cifar10 = lines(text, "locality")
    assert len(head) == 6  # nothing is measured in the middle, so that column is left out
    assert exp1 == ["exp1", "0.3 [0.2, 0.4]", "0.9 [0.8, 1]", "0.14", "7", "here"]
    assert cifar10 == ["cifar10", "", "", "", "20", "here"]
    assert exp2l == ["exp2l", "", "not measured", "", "", ""]


def test_features_are_told_by_part_and_by_the_best_layer():
    at = {"level": "high", "snapshot": "final"}
    rows = [
        Row("features/between", "color", 0.4, {"layer": "encoder", "part": "mean", **at}, low=0.3, high=0.5),
        Row("features/between", "color", 0.5, {"layer": "enc.0", "part": "encoder", "index": 0, **at}),
        Row("features/between", "color", -0.1, {"layer": "enc.1", "part": "encoder", "index": 1, **at}),
    ]
    text = page(Study(rows))
    assert lines(text, "features")[1:] == [["color", "hidden states", "encoder", "high", "0.4 [0.3, 0.5]", "here"]]
    assert "color: the mean cosine between concepts is nearest to 0 in enc.1 at high noise, -0.1." in text


def test_claims_of_the_theory_stand_in_their_sections():
    said = {"says": "KL <= bound", "rule": "<=", "predicted": 1.0, "tolerance": 0.0}
    rows = [
        Row("lemma2/bound", "exact", 0.55, said | {"holds": True}),
        Row("swing_by/depth_3", "exact", 0.36, said | {"holds": False}, low=0.27, high=0.46),
    ]
    text = page(Study(rows, shipped=frozenset({("lemma2", "exact")})))
    assert lines(text, "theory")[1] == ["lemma2/bound", "KL &lt;= bound", "&lt;= 1", "0.55", "yes"]
    assert lines(text, "sim")[1][3:] == ["0.36 [0.27, 0.46]", "no"]
    assert "1 of 1 claims hold (measured: shipped)." in text
    assert "0 of 1 claims hold (measured: here). These do not: KL &lt;= bound." in text


def test_what_was_measured_here_replaces_what_was_shipped():
    shipped = [k_max(1, 1, 1, "9", num=32), k_max(3, 3, 3, "1", "exp2", num=32)]
    study = gathered(shipped, [k_max(7, 6, 8, "9")])
    assert {run: study.of(run)["length/k_max_paper"].value for run in ("exp1", "exp2")} == {"exp1": 7, "exp2": 3}
    assert study.shipped == {("length", "exp2")}


def test_a_dot_is_of_one_model():
    """Who measured K_max of a model of their own does not get the locality of the shipped one beside it."""
    shipped = [k_max(6, 5, 7, "9"), local("exp1", 0.97, 0.96, 0.98), k_max(9, 9, 9, None, "exp1 within 1/4")]
    assert len(dots(gathered(shipped, []).rows, "paper")) == 1
    own = gathered(shipped, [k_max(0, 0, 0, "9")])
    assert dots(own.rows, "paper") == [] and own.runs("length/k_max_paper") == ["exp1"]


def test_the_page_is_one_file_with_small_pictures_and_a_link_to_every_part(tmp_path):
    Image.new("RGB", (3000, 20), "red").save(tmp_path / "a.png")
    times = [Time("train exp1", 50.0, "composcope train exp1")]
    text = page(Study([k_max(7, 6, 8, "9")]), [Picture("table1", tmp_path / "a.png", "a <sheet>")], times)
    (data,) = re.findall(r"<figure class=full><img [^>]*base64,([^\"]*)", text)
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        assert picture.format == "WEBP" and picture.width == LARGEST[0]
    assert "<figcaption>a &lt;sheet&gt;</figcaption>" in text
    assert "http" not in text and lines(text, "times")[1] == ["train exp1", "50.0", "composcope train exp1"]
    for name in ("findings", *(part.name for part in PARTS if part.name != "others"), "times"):
        assert f"<a href=#{name}>" in text and f"<h2 id={name}>" in text


def test_curves_over_K_are_drawn_from_the_rows():
    rows = [
        Row(f"length/{what}", "exp1", value, {**FINAL, "K": K}, low=0, high=1)
        for what in ("exact", "complete", "found")
        for K, value in ((1, 1.0), (2, 0.5))
    ]
    assert page(Study(rows)).count("data:image/webp") == 3 + 3  # Tables 1 and 2


def test_the_command_gathers_rows_and_pictures(tmp_path, monkeypatch, capsys):
    from composcope.cli import main

    results = tmp_path / "results"
    folder = results / "evaluate" / "of-this-test-final-paper-0-32-01234567"
    add(results / "evaluate.jsonl", [k_max(6, 5, 7, "9 (v3: 7)", run="of-this-test")])
    for sheet in (folder, folder.with_name("of-this-test-early-paper-0-32-01234567")):
        sheet.mkdir(parents=True)
        Image.new("RGB", (4, 4), "red").save(sheet / "sheet.png")
    words = ["report", "--results", str(results), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", ["composcope", *words])
    main()
    text = (tmp_path / "out" / "index.html").read_text()
    assert text.count("<figcaption>of-this-test: each row asks for one object more") == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 6 and "index.html" in said[-1]


def test_circles_are_told_by_the_end_of_their_training():
    def row(step: int, value: float, asked: tuple, concept: str = "size") -> Row:
        setting = {"step": step, "asked": list(asked), "concept": concept, "trained": asked != (1, 1)}
        return Row("circles/accuracy", "circles-0.5-16-0", value, setting, 0, value - 0.1, value + 0.1)

    rows = [row(5, 0.2, (0, 0)), row(9, 0.8, (0, 0)), row(9, 0.7, (0, 1)), row(5, 0.9, (1, 1)), row(9, 0.5, (1, 1))]
    _, told = lines(page(Study(rows)), "sim")
    assert told == ["circles-0.5-16-0", "0.7 [0.6, 0.8]", "0.5 [0.4, 0.6]"]


def test_words_are_told_at_the_highest_noise():
    def row(word: str, sigma: float, value: float) -> Row:
        setting = {"word": word, "start": 3, "sigma": sigma, "chance": 1 / 3}
        return Row("features/share_in_third", "control", value, setting, low=value - 0.1, high=value + 0.1)

    _, left, red = lines(page(Study([row("left", 1, 0.4), row("left", 9, 0.8), row("red", 9, 0.3)])), "features")
    assert left[:3] == ["control", "left", "0.8 [0.7, 0.9]"] and red[2] == "0.3 [0.2, 0.4]"
