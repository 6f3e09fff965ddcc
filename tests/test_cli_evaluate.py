"""`composcope evaluate` from the command line to its files: a tiny run, a folder of images, and bad input."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from composcope.cli.evaluate import Args, ends, in_the_paper, main
from composcope.errors import InputError
from composcope.evaluation.detect import detect
from composcope.evaluation.length import read as read_images
from composcope.evaluation.oracle import oracle
from composcope.results import Row, read
from composcope.runs.config import configure
from composcope.scenes.condition import PAPER_LOCATIONS


@pytest.fixture
def folder(tmp_path):
    asked = {f"{K}-{i}.png": PAPER_LOCATIONS[:K] for K in range(4) for i in range(4)}
    for name, image in zip(asked, oracle(64)(list(asked.values()), range(16)), strict=True):
        Image.fromarray(image).save(tmp_path / name)
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    return tmp_path


def test_a_folder_of_perfect_images(folder, capsys):
    out = folder / "results.jsonl"
    main(Args(images=folder, asked=folder / "asked.json", out=out, json=True))
    printed = [Row(**json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    assert printed == read(out)
    value = {(row.claim, row.setting.get("K")): row.value for row in printed}
    for K in range(4):
        assert value["length/exact", K] == value["length/complete", K] == 1
        assert value["length/found", K] == K
        assert value["length/missing", K] == value["length/extra", K] == value["length/count_error", K] == 0
    assert value["length/k_max_paper", None] == 3
    assert value["length/none_asked", None] == "0"
    with Image.open(folder / "results" / folder.name / "sheet.png") as sheet:
        assert sheet.size[0] > sheet.size[1] / 2
    main(Args(images=folder, asked=folder / "asked.json", out=out))
    assert len(read(out)) == len(printed)  # measured again, not added again


def test_the_paper_is_beside_ours_in_the_terminal(folder, capsys):
    main(Args(images=folder, asked=folder / "asked.json", out=folder / "results.jsonl"))
    shown = capsys.readouterr().out
    assert "the paper" in shown and "100%" in shown and "K_max, strict rule" in shown


@pytest.mark.parametrize(
    "args",
    [
        Args(),
        Args(run="exp1", images=Path("x")),
        Args(images=Path("x")),
        Args(run="exp1", num=0),
        Args(run="nothing-of-that-name"),
    ],
)
def test_bad_input_is_one_sentence(args):
    with pytest.raises(InputError):
        main(args)


def test_the_command_line_says_so_and_exits_with_2(tmp_path):
    command = [sys.executable, "-m", "composcope", "evaluate", "--images", str(tmp_path), "--asked", "none.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "none.json" in done.stderr and "Traceback" not in done.stderr


def test_a_run_is_drawn_judged_and_not_drawn_again(tmp_path, monkeypatch):
    """The smoke preset with its first weights: what it draws is noise, but every part of the path is real."""
    import torch

    from composcope.cli import evaluate
    from composcope.diffusion.pixels import Pixels
    from composcope.runs.config import configure
    from composcope.runs.model import Model

    model = Model(configure("exp2", "smoke"), Pixels(torch.zeros(3, 1, 1), 1.0)).eval()
    monkeypatch.setattr(evaluate, "load", lambda *_: model)
    args = Args(run="runs/exp2", num=2, max=2, steps=2, out=tmp_path / "evaluate.jsonl")
    main(args)
    (kept,) = (tmp_path / "evaluate").iterdir()
    first = {file.name: file.read_bytes() for file in kept.glob("K*.npz")}
    assert sorted(first) == ["K0.npz", "K1.npz", "K2.npz"]
    with np.load(kept / "K2.npz", allow_pickle=False) as file:
        assert file["images"].shape == (2, 16, 16, 3)
    rows = {row.claim: row for row in read(args.out)}
    assert rows["length/k_max_paper"].paper == "1+(0-2) (v3: 2)" and rows["length/none_asked"].paper == "0-3"
    monkeypatch.setattr(evaluate, "sampler", lambda *_: pytest.fail("drawn again"))
    with pytest.raises(pytest.fail.Exception):
        main(replace(args, seed=1))
    monkeypatch.setattr(evaluate, "sampler", lambda *_: lambda sets, seeds: pytest.fail("drawn again"))
    main(args)
    main(replace(args, grid=1))  # the same images, judged with the whole image as tolerance: any object is found
    found = {row.run: row.value for row in read(args.out) if row.claim == "length/found" and row.setting["K"] == 2}
    drawn = [len(seen) for seen in detect(read_images(kept / "K2.npz"))]
    assert found["exp2 within 1/1"] == np.mean([min(2, count) for count in drawn]) >= found["exp2"]
    assert {(row.seed, row.setting["steps"], row.setting["grid"]) for row in read(args.out)} == {(0, 2, 4), (0, 2, 1)}


def test_another_run_of_the_same_name_leaves_the_rows_of_the_first(tmp_path, monkeypatch):
    import torch

    from composcope.cli import evaluate
    from composcope.diffusion.pixels import Pixels
    from composcope.runs.model import Model

    kept = []
    for place, seed in (("a", 0), ("b", 1), ("a", 0)):
        model = Model(configure("exp2", "smoke", {"seed": seed}), Pixels(torch.zeros(3, 1, 1), 1.0)).eval()
        monkeypatch.setattr(evaluate, "load", lambda *_, model=model: model)
        main(Args(run=f"{place}/exp2", num=2, max=1, steps=2, out=tmp_path / "evaluate.jsonl"))
        kept.append(read(tmp_path / "evaluate.jsonl"))
    first, both, again = kept
    assert both[: len(first)] == first and len(both) == 2 * len(first)
    assert again == [*both[len(first) :], *first]  # what was measured last is last, and is what the report takes


def test_patches_the_size_of_the_image_have_the_global_models_values_beside_them():
    """E.3: k = 8 on a grid of 16 "makes the patches the size of the image"."""
    local, wide = (in_the_paper(configure("exp2l", "laptop", {"radius": k})) for k in (7, 8))
    assert wide == in_the_paper(configure("exp2")) == ("1+(0-2) (v3: 2)", "0-3")
    assert local == ("9+(0-2) (v3: 9)", None)
    assert in_the_paper(configure("exp1", "laptop", {"objects": (2, 3)})) == (None, None)


@pytest.mark.parametrize("asked", ["{}", json.dumps({"0.png": [[0.5, 0.5]] * 13})])
def test_nothing_asked_and_too_much_asked_are_one_sentence(tmp_path, asked):
    Image.new("RGB", (32, 32)).save(tmp_path / "0.png")
    (tmp_path / "asked.json").write_text(asked)
    with pytest.raises(InputError, match="asks for nothing, or for more than 12 of one image"):
        main(Args(images=tmp_path, asked=tmp_path / "asked.json", out=tmp_path / "rows.jsonl"))


def test_one_image_has_no_interval():
    values = np.array([3.0])
    assert ends(values) == ends(values > 2) == (None, None)
    assert ends(np.array([2.0, 4.0])) == pytest.approx((3 - 1.96, 3 + 1.96))


@pytest.mark.parametrize("out", [".", "rows", "picture.png"])
def test_rows_that_cannot_be_written_are_refused_before_the_work(folder, tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff")
    monkeypatch.setattr("composcope.cli.evaluate.judge_images", lambda args: pytest.fail("worked"))
    with pytest.raises(InputError, match="rows"):
        main(Args(images=folder, asked=folder / "asked.json", out=Path(out)))
    assert (tmp_path / "picture.png").read_bytes() == b"\x89PNG\xff"
