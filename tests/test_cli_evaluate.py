"""`composcope evaluate` from the command line to its files: a tiny run, a folder of images, and bad
input."""

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from PIL import Image
from same_process import composcope
from untrained import untrained

from composcope.cli.evaluate import Args, main
from composcope.errors import InputError
from composcope.evaluation import perfect, read_answers
from composcope.evaluation.accuracy import STILL
from composcope.files import parse_json
from composcope.results import Row, read_rows, where
from composcope.results.samples import read_samples
from composcope.scenes.condition import PAPER_LOCATIONS, LocationGrid


@pytest.fixture
def folder(tmp_path):
    asked = {f"{K}-{i}.png": PAPER_LOCATIONS[:K] for K in range(3) for i in range(2)}
    images = perfect(LocationGrid(), list(asked.values()), range(len(asked)), STILL, 64)
    for name, image in zip(asked, images, strict=True):
        Image.fromarray(image).save(tmp_path / name)
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    return tmp_path


@pytest.fixture
def run(tmp_path):
    """The smoke preset with its first weights: what it draws is noise, but every part is real."""
    return untrained(tmp_path / "exp2", "exp2", gain=0.0)


def test_a_folder_of_perfect_images(folder, capsys):
    out = folder / "results.jsonl"
    main(Args(images=folder, asked=folder / "asked.json", out=out, json=True))
    printed = [parse_json(line, Row, "printed") for line in capsys.readouterr().out.splitlines()]
    assert printed == read_rows(out)
    value = {(row.what, row.K, row.rule): row.value for row in printed}
    for K in range(3):
        assert value["length/exact", K, None] == value["length/complete", K, None] == 1
        assert value["length/found", K, None] == value["length/drawn", K, None] == K
    assert value["length/k_max", None, "paper"] == value["length/k_max", None, "strict"] == 2
    (sheet,) = (folder / "results").glob(f"{folder.name}-*/sheet.png")
    with Image.open(sheet) as image:
        assert image.size[0] > image.size[1]
    main(Args(images=folder, asked=folder / "asked.json", out=out))
    assert len(read_rows(out)) == len(printed)  # measured again, not added again
    shown = capsys.readouterr().out
    assert "100%" in shown and "K_max, strict rule: 2" in shown and "next: composcope" in shown


def test_folders_of_one_name_have_rows_and_pictures_of_their_own(folder, monkeypatch):
    module = import_module("composcope.evaluation.evaluate")
    monkeypatch.setattr(module, "known_error", lambda *_: None)  # measuring it takes long
    for parent in "ab":
        (folder / parent / "mine").mkdir(parents=True)
    names = {"a": "1-0.png", "b": "0-0.png"}  # drawn, and blank
    (folder / "one.json").write_text(json.dumps({"0.png": PAPER_LOCATIONS[:1]}))
    out = folder / "rows.jsonl"
    for parent in "aba":
        (folder / parent / "mine" / "0.png").write_bytes((folder / names[parent]).read_bytes())
        main(Args(images=folder / parent / "mine", asked=folder / "one.json", out=out))
    found = where(read_rows(out), what="length/found", run="mine")
    assert sorted(row.value for row in found) == [0, 1]  # the third replaced those of the first
    assert len(list((folder / "rows").glob("mine-*/sheet.png"))) == 2


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("02", "There is no K_max: it needs every K from 1 on, and K = 1 was not asked for."),
        ("13", "K_max counts K up to 1 alone: K = 2 was not asked for."),
    ],
)
def test_what_k_max_does_not_count_is_told(folder, capsys, monkeypatch, asked, sentence):
    module = import_module("composcope.evaluation.evaluate")
    monkeypatch.setattr(module, "known_error", lambda *_: None)  # measuring it takes long
    sets = {f"{K % 3}-{i}.png": PAPER_LOCATIONS[:K] for K in map(int, asked) for i in range(2)}
    (folder / "some.json").write_text(json.dumps(sets))
    main(Args(images=folder, asked=folder / "some.json", out=folder / "results.jsonl"))
    shown = capsys.readouterr().out
    assert sentence in " ".join(shown.split())
    assert ("K_max, strict rule" in shown) == ("1" in asked)


def test_a_run_is_drawn_judged_and_not_drawn_again(run, tmp_path, monkeypatch):
    args = Args(run=str(run), num=2, max=2, steps=2, out=tmp_path / "evaluate.jsonl")
    main(args)
    (kept,) = (tmp_path / "evaluate").iterdir()
    names = ["K0.npz", "K1.npz", "K2.npz", "exact.png", "samples.npz", "sheet.png"]
    assert sorted(file.name for file in kept.iterdir()) == names
    assert read_answers(kept / "K2.npz").images.shape == (2, 16, 16, 3)
    rows = read_rows(args.out)
    assert {(row.run, row.snapshot, row.images, row.labels) for row in rows} == {
        ("exp2", "final", 1600, "one")
    }

    fail = lambda *_, **__: pytest.fail("drawn again")  # noqa: E731
    module = import_module("composcope.evaluation.evaluate")
    monkeypatch.setattr(module, "draw", fail)
    monkeypatch.setattr(module, "known_error", lambda *_: None)  # measuring it takes long
    main(args)
    main(replace(args, way="paper"))  # the usual one
    assert len(read_rows(args.out)) == len(rows)
    # Fewer asked for later: the pictures are of all that is kept.
    whole = (kept / "sheet.png").read_bytes()
    main(replace(args, max=1))
    assert (kept / "sheet.png").read_bytes() == whole
    assert [len(asked) for asked in read_samples(kept / "samples.npz").record.asked].count(2) == 2
    # The same images, judged with the whole image as tolerance: any object is found.
    main(replace(args, tolerance=1.0))
    found = where(read_rows(args.out), what="length/found", K=2)
    drawn = [len(things) for things in read_answers(kept / "K2.npz").found]
    wide = next(row.value for row in found if row.tolerance == 1.0)
    assert wide == sum(min(2, count) for count in drawn) / 2
    for change in ({"seed": 1}, {"way": "random"}, {"intervention": "local"}, {"steps": 3}):
        with pytest.raises(pytest.fail.Exception):
            main(replace(args, **change))


def test_an_intervention_is_a_coordinate_of_its_rows(run, tmp_path):
    args = Args(run=str(run), num=1, max=1, steps=2, out=tmp_path / "evaluate.jsonl")
    main(args)
    main(replace(args, intervention="local", radius=0.25))
    rows = read_rows(args.out)
    assert {(row.run, row.intervention, row.radius) for row in rows} == {
        ("exp2", None, None),
        ("exp2", "local", 0.25),
    }
    cost = {row.intervention: row.value for row in where(rows, what="length/evaluations")}
    assert cost == {None: 1, "local": 2}


@pytest.mark.parametrize(
    "args",
    [
        Args(),
        Args(run="exp1", images=Path("x")),
        Args(images=Path("x")),
        Args(run="exp1", max=-1),
        Args(run="nothing-of-that-name"),
        Args(run="https://example.org/exp1"),
    ],
)
def test_bad_input_is_one_sentence(args):
    with pytest.raises(InputError):
        main(args)


@pytest.mark.parametrize(
    "wrong", [{"tolerance": 0.0}, {"objects": 0}, {"extras": -1}, {"view": "squre"}]
)
def test_what_images_cannot_be_judged_by_is_refused_before_the_work(folder, wrong):
    sentence = "a tolerance above 0, objects from 1 and extras from 0|there is no view 'squre'"
    with pytest.raises(InputError, match=sentence):
        main(Args(images=folder, asked=folder / "none.json", **wrong))


@pytest.mark.parametrize("out", [".", "rows", "rows.json", "figure.png"])
def test_rows_that_cannot_be_written_or_found_again_are_refused_before_the_work(folder, out):
    with pytest.raises(InputError, match="rows go into a file"):
        main(Args(images=folder, asked=folder / "asked.json", out=Path(out)))


def test_the_command_line_says_so_and_exits_with_2(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        composcope("evaluate", "--images", tmp_path, "--asked", "none.json")
    said = capsys.readouterr().err
    assert stop.value.code == 2 and "none.json" in said and said.count("\n") == 1
