"""`composcope rows` and the tab completion: rows by their coordinates, in the formats other
programs read."""

import csv
import io
import sys

import numpy as np
import pytest
from same_process import composcope

from composcope import cli
from composcope.cli.rows import Args, main
from composcope.errors import InputError
from composcope.files import parse_json
from composcope.progress import tell
from composcope.report.evaluation import evaluation_table
from composcope.results import Row, add_rows, row, where


@pytest.fixture
def folder(tmp_path):
    made = [row("length/exact", K / 4, low=0.0, high=1.0, n=4, run="exp1", K=K) for K in (1, 2)]
    text = row("theory/lemma", "holds", run="toy", pixel=(1, 2))
    add_rows(tmp_path / "a.jsonl", [*made, text])
    return tmp_path


def test_csv_and_json_hold_what_was_measured(folder, capsys):
    main(Args(("run=exp1", "K=2"), (folder,), csv=True))
    (line,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (line["what"], line["value"], line["K"], line["n"]) == ("length/exact", "0.5", "2", "4")
    main(Args((), (folder,), json=True))
    lines = capsys.readouterr().out.splitlines()
    assert [parse_json(text, Row, "printed").value for text in lines] == [0.25, 0.5, "holds"]
    main(Args((), (folder,)))
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["length/exact", "2", "1"] in words and ["theory/lemma", "1", "1"] in words


def test_the_table_says_once_what_all_rows_have_in_common(folder, capsys):
    main(Args(("run=exp1",), (folder,)))
    text = capsys.readouterr().out
    assert "all of them: what=length/exact n=4 run=exp1\n" in text
    words = [line.split() for line in text.splitlines()]
    assert ["value", "low", "high", "K"] in words and ["0.25", "0", "1", "1"] in words
    assert "2 rows, 2 of them shown" in text


def test_a_terminal_of_80_columns_cuts_no_value(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    about = [
        {"snapshot": snapshot, "images": 64000 * times, "intervention": done, "K": times}
        | {"tolerance": 0.1 / times, "states": "trajectory", "condition": f"0.{times},0.65"}
        for times, snapshot in enumerate(("early", "middle", "final"), start=1)
        for done in ("clusters", "composed")
    ]
    what = "locality/conditional_locality"
    made = [row(what, 0.98765, low=0.97531, high=0.99887, run="exp1", **one) for one in about]
    add_rows(tmp_path / "a.jsonl", [*made, row("length/exact", 0.5, run="exp1")])
    main(Args(("run=exp1",), (tmp_path,)))
    lines = capsys.readouterr().out.splitlines()[:-1]
    words = " ".join(lines).split()
    assert max(map(len, lines)) <= 80 and lines[0] == "all of them: run=exp1"
    assert " ".join(words).count("0.9877 [0.9753, 0.9989]") == len(made)
    for name in ("snapshot", "images", "intervention", "K", "condition"):
        told = [word for word in words if word.startswith(f"{name}=")]
        assert told == [f"{name}={one[name]}" for one in about]


def test_of_several_values_of_a_coordinate_any_counts(folder, capsys):
    main(Args(("run=exp1", "K=1", "K=2"), (folder,), json=True))
    lines = capsys.readouterr().out.splitlines()
    assert [parse_json(text, Row, "printed").K for text in lines] == [1, 2]


def test_numbers_are_equal_up_to_the_rounding_of_float32():
    of_torch = Row("locality/square", 3.0, sigma=float(np.float32(0.1)))
    typed = Row("locality/square", 4.0, sigma=0.1)
    other = Row("locality/square", 5.0, sigma=0.10001)
    for sigma in (of_torch.sigma, typed.sigma, [0.1, 7.0]):
        assert where([of_torch, typed, other], sigma=sigma) == [of_torch, typed]
    assert where([of_torch, typed, other], sigma=0.10001) == [other]
    assert where([typed], sigma=1e300) == []


def test_brackets_in_a_name_are_shown(folder, capsys):
    named = [row("length/exact", 0.5, run=run, K=1) for run in ("mine[lr=1]", "mine[/lr]")]
    add_rows(folder / "a.jsonl", named)
    main(Args(("K=1",), (folder,)))
    text = capsys.readouterr().out
    assert "mine[lr=1]" in text and "mine[/lr]" in text
    tell(evaluation_table([row("length/exact", 0.5, run="mine[/lr]", asked="paper", K=1, n=1)]))
    assert "mine[/lr]: the paper's conditions" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("rows", "--folders"), ("report", "--results")])
def test_a_folder_that_is_none_is_named(folder, capsys, words):
    for path in (folder / "typo", folder / "a.jsonl"):
        with pytest.raises(SystemExit):
            composcope(*words, path)
        assert f"{words[1]}: there is no folder {path}" in capsys.readouterr().err


def test_parquet_is_a_table(folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    main(Args((), (folder,), parquet=folder / "rows.parquet"))
    table = parquet.read_table(folder / "rows.parquet").to_pylist()
    values = [(line["value"], line["text"]) for line in table]
    assert values == [(0.25, None), (0.5, None), (None, "holds")]


def test_parquet_without_pyarrow_is_one_sentence(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="--parquet needs pyarrow"):
        main(Args((), (folder,), parquet=folder / "rows.parquet"))
    assert not (folder / "rows.parquet").exists()


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("colour=1", "no coordinate"),
        ("K", "no coordinate"),
        ("K=two", "K is a whole number$"),
        ("sigma=low", "sigma is a number$"),
        ("holds=maybe", "holds is true or false$"),
        ("pixel=1", "pixel is two numbers"),
    ],
)
def test_what_is_no_coordinate_is_named(folder, word, sentence):
    with pytest.raises(InputError, match=f"^'{word}'.*{sentence}"):
        main(Args((word,), (folder,)))


def test_a_value_is_a_number_or_a_word_and_a_coordinate_may_be_missing(folder, capsys):
    for words, found in (
        (("value=0.5",), ["length/exact"]),
        (("value=holds",), ["theory/lemma"]),
        (("K=",), ["theory/lemma"]),
        (("K=null", "pixel=1,2"), ["theory/lemma"]),
        (("K=", "K=1"), ["length/exact", "theory/lemma"]),
        (("pixel=null",), ["length/exact", "length/exact"]),
    ):
        main(Args(words, (folder,), json=True))
        lines = capsys.readouterr().out.splitlines()
        assert [parse_json(text, Row, "printed").what for text in lines] == found


def test_a_pair_of_numbers_is_a_coordinate(folder, capsys):
    main(Args(("pixel=1,2",), (folder,), json=True))
    assert parse_json(capsys.readouterr().out, Row, "printed").what == "theory/lemma"


def test_the_shell_completes_commands_and_their_options(monkeypatch, capsys):
    some = {name: cli.COMMANDS[name] for name in ("rows", "models", "scenes", "train")}
    monkeypatch.setattr(cli, "COMMANDS", some)
    with pytest.raises(SystemExit) as stop:
        composcope(cli.COMPLETION, "bash")
    script = capsys.readouterr().out
    assert not stop.value.code
    assert all(word in script for word in ("rows", "models", "--where", "--optimizer", "--view"))
    with pytest.raises(SystemExit) as stop:
        composcope(cli.COMPLETION, "fish")
    assert stop.value.code == 2 and "bash, zsh or tcsh" in capsys.readouterr().err


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_tells_what_to_write_not_types(capsys, command):
    with pytest.raises(SystemExit) as stop:
        composcope(command, "--help")
    text = capsys.readouterr().out
    assert stop.value.code == 0 and "usage" in text and "{None}" not in text
