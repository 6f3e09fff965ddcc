"""`composcope audit` on a model of one's own, written to a file and named on the command line."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from composcope.cli import main
from composcope.results import read_rows, where

MY_MODEL = '''
import torch
from my_words import NAMES

def denoiser(x, sigma, cond):
    """Word k paints the k-th quarter of the rows."""
    rows = torch.zeros(len(x), 1, x.shape[2], 1)
    if cond is not None:
        rows = cond[:, None, :, None].repeat_interleave(x.shape[2] // 4, 2)
    return 0.5 * x + rows

def flat(x, sigma, cond):
    return x[:, 0]

def broken(x, sigma, cond):
    return x.reshape(7, 7)

class Bright:
    """Of another shape than square and colour; it paints how bright each image is on the whole."""

    def __init__(self, *shape):
        self.shape = shape

    def __call__(self, x, sigma, cond):
        assert x.shape[1:] == self.shape
        return 0.5 * x

gray, wide, latent = Bright(1, 16, 16), Bright(3, 16, 24), Bright(4, 8, 8)
side = Bright(16, 16)

from composcope.adapters import from_eps
adapted = from_eps(lambda x_t, t: 0.5 * x_t, torch.linspace(0.99, 0.01, 10))

class Words:
    features = 4

    def __call__(self, condition_sets, seed=0):
        return torch.stack([self.left_out(asked)[0] for asked in condition_sets])

    def left_out(self, condition_set, seed=0):
        parts = torch.eye(4)[[NAMES.index(name) for name in condition_set]]
        return torch.cat([parts.sum(0)[None], parts.sum(0) - parts])

conditioner = Words()
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_words.py").write_text('NAMES = ["sky", "hill", "tree", "lake"]')
    (tmp_path / "my_model.py").write_text(MY_MODEL)
    (tmp_path / "asked.json").write_text('[["sky", "lake"]]')
    (tmp_path / "photos").mkdir()
    rng = np.random.default_rng(0)
    for index in range(3):
        picture = Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8))
        picture.save(tmp_path / "photos" / f"{index}.png")
    return tmp_path


def run(folder: Path, name: str, *more: str) -> Path:
    out = folder / "results" / "audit.jsonl"
    images = ("--images", str(folder / "photos"), "--size", "16", "--out", str(out))
    sys.argv = ["composcope", "audit", f"{folder / 'my_model.py'}:{name}", *images, *more]
    main()
    return out


def test_a_denoiser_of_ones_own_with_words_as_conditions(folder, capsys):
    conditions = ("--conditioner", f"{folder / 'my_model.py'}:conditioner")
    asked = ("--asked", str(folder / "asked.json"))
    out = run(folder, "denoiser", *conditions, *asked, "--sigmas", "5", "0.5")
    rows = read_rows(out)
    assert [row.value for row in where(rows, what="locality/square")] == [1, 1]
    assert [row.value for row in where(rows, what="locality/overlap")] == [0, 0, 0]
    assert {row.condition for row in where(rows, what="locality/influence")} == {"sky", "lake"}
    assert {(row.run, row.n) for row in rows} == {(f"{folder / 'my_model.py'}:denoiser", 3)}
    printed = capsys.readouterr().out
    assert "no places" in printed and f"rows: {out}" in printed and "next:" in printed
    (figure,) = out.with_suffix("").glob("denoiser-*.png")
    picture = np.asarray(Image.open(figure))
    assert picture.std() > 10  # something is drawn


def test_only_pictures_that_are_measured_are_read_and_each_audit_has_its_figure(folder):
    (folder / "photos" / "z.png").write_text("no picture")
    first = run(folder, "gray", "--sigmas", "1", "--num", "3")
    again = run(folder, "adapted", "--sigmas", "1", "--num", "3")
    assert len({row.run for row in read_rows(first)}) == 2 and first == again
    assert len([*first.with_suffix("").glob("*.png")]) == 2


@pytest.mark.parametrize("name", ["gray", "wide", "adapted"])
def test_pictures_take_the_shape_of_the_denoisers_x(folder, name):
    out = folder / "audit.jsonl"
    images = ("--images", str(folder / "photos"), "--sigmas", "1", "--out", str(out))
    sys.argv = ["composcope", "audit", f"{folder / 'my_model.py'}:{name}", *images]
    main()
    [square] = where(read_rows(out), what="locality/square")
    # Its name on the command line: two adapted models of one file would else be one in the rows.
    assert (square.value, square.run) == (1, f"{folder / 'my_model.py'}:{name}")


def test_what_is_asked_of_each_image_goes_by_the_order_of_their_names(folder):
    """The third picture is the bright one, and the third set asks for a word that acts where it is
    bright alone."""
    for index, level in enumerate((0, 0, 255)):
        flat = np.full((16, 16, 3), level, np.uint8)
        Image.fromarray(flat).save(folder / "photos" / f"{index}.png")
    (folder / "each.json").write_text('[["sky"], ["sky"], ["lake"]]')
    (folder / "lit.py").write_text(
        "from my_model import conditioner\n"
        "def denoiser(x, sigma, cond):\n"
        "    lit = (x.mean((1, 2, 3), keepdim=True) > 0).float()\n"
        "    return 0.5 * x + lit * cond[:, 3, None, None, None]\n"
    )
    for count in (3, 2):  # one for each picture, of which fewer may be measured
        out = folder / f"{count}.jsonl"
        sys.argv = ["composcope", "audit", f"{folder / 'lit.py'}:denoiser", "--size", "16"]
        sys.argv += ["--images", str(folder / "photos"), "--num", str(count), "--sigmas", "0.001"]
        sys.argv += ["--conditioner", f"{folder / 'lit.py'}:conditioner", "--out", str(out)]
        sys.argv += ["--asked", str(folder / "each.json")]
        main()
        [acts] = where(read_rows(out), what="locality/influence")
        assert acts.value == pytest.approx((count - 2) * 3**0.5 / 3)


def test_a_file_that_has_denoiser_and_conditioner_is_run_once(folder):
    mine = folder / "my_model.py"
    with open(mine, "a") as file:
        file.write(f"\nwith open({str(folder / 'runs')!r}, 'a') as file:\n    file.write('once')\n")
    asked = ("--conditioner", f"{mine}:conditioner", "--asked", str(folder / "asked.json"))
    run(folder, "denoiser", *asked, "--sigmas", "1")
    assert (folder / "runs").read_text() == "once"


def test_audits_of_other_images_and_conditions_have_rows_of_their_own(folder):
    conditions = ("--conditioner", f"{folder / 'my_model.py'}:conditioner", "--sigmas", "1")
    asked = [*conditions, "--asked", str(folder / "asked.json")]
    out = run(folder, "denoiser", *asked)
    for changed in (
        lambda: (folder / "asked.json").write_text('[["hill", "tree"]]'),
        lambda: (folder / "asked.json").write_text('[["hill"], ["tree"], ["sky"]]'),
        lambda: (folder / "photos" / "0.png").unlink(),
    ):
        (folder / "asked.json").write_text('[["sky", "lake"]]')
        before = len(read_rows(out))
        run(folder, "denoiser", *asked)
        assert len(read_rows(out)) == before  # measured again, not added again
        changed()
        run(folder, "denoiser", *asked)
        assert len(read_rows(out)) > before


def test_without_conditions_and_as_json(folder, capsys):
    out = run(folder, "denoiser", "--sigmas", "1", "--num", "2", "--json")
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["what"] for line in printed] == ["locality/square", "locality/energy"]
    assert len(read_rows(out)) == 2


def test_what_is_wrong_is_one_sentence_and_nothing_is_left_behind(folder, capsys):
    (folder / "broken.json").write_text('["sky"]')
    (folder / "two.json").write_text('[["sky"], ["lake"]]')
    (folder / "who.json").write_text('[["who"]]')
    (folder / "raises.py").write_text("{}['weights']")
    (folder / "spoiled.py").write_text("def denoiser(:")
    words = ("--conditioner", f"{folder / 'my_model.py'}:conditioner")
    for name, more, said in (
        ("nobody", (), "has no 'nobody'"),
        ("flat", (), "returns [3, 16, 16] for x of [3, 3, 16, 16]"),
        ("denoiser", words, "a conditioner and nothing asked"),
        ("denoiser", ("--size", "100000"), "--size 100000: more than 67108864 pixels"),
        ("denoiser", ("--asked", str(folder / "asked.json")), "without a conditioner"),
        (
            "denoiser",
            (*words, "--asked", str(folder / "broken.json")),
            "condition sets are a list of lists",
        ),
        (
            "denoiser",
            (*words, "--asked", str(folder / "two.json")),
            "two.json has 2 condition sets",
        ),
        ("denoiser", (*words, "--asked", str(folder / "who.json")), "ValueError: 'who' is not in"),
        ("broken", (), "my_model.py, line 16: RuntimeError: shape '[7, 7]' is invalid"),
        ("Bright", (), "is a class"),
        ("latent", (), "x has 4 channels"),
        ("side", (), "shape is (channels, height, width), not (16, 16)"),
        (
            "denoiser",
            ("--conditioner", f"{folder / 'raises.py'}:it"),
            "raises.py, line 1: KeyError",
        ),
        ("denoiser", ("--conditioner", "conditioner"), "give FILE.py:NAME"),
        ("denoiser", ("--conditioner", f"{folder / 'spoiled.py'}:it"), "cannot be imported"),
        ("denoiser", ("--conditioner", f"{folder / 'none.py'}:it"), "there is no file"),
    ):
        with pytest.raises(SystemExit) as stopped:
            run(folder, name, *more)
        err = capsys.readouterr().err
        assert stopped.value.code == 2 and said in err and "Traceback" not in err
        assert len(err.splitlines()) == 1
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("neighbour", "my_neighbour.py, line 2: RuntimeError: shape '[7, 7]' is invalid"),
        ("library", "functional.py, line "),
    ],
)
def test_an_error_in_what_the_named_file_calls_is_told(folder, capsys, name, said):
    (folder / "my_neighbour.py").write_text("def net(x, t):\n    return x.reshape(7, 7)\n")
    (folder / "calls.py").write_text(
        "import torch\nfrom my_neighbour import net\nfrom composcope.adapters import from_x0\n"
        "neighbour = from_x0(net)\n"
        "library = from_x0(torch.nn.TransformerDecoderLayer(4, 2))\n"
    )
    sys.argv = ["composcope", "audit", f"{folder / 'calls.py'}:{name}", "--size", "16"]
    sys.argv += ["--images", str(folder / "photos"), "--sigmas", "1"]
    sys.argv += ["--out", str(folder / "audit.jsonl")]
    with pytest.raises(SystemExit) as stopped:
        main()
    err = capsys.readouterr().err
    assert stopped.value.code == 2 and said in err and len(err.splitlines()) == 1
