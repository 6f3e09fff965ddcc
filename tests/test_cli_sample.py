"""`composcope sample` and the sheets it draws: dots where they were asked for, one clear sentence
for what is wrong."""

import numpy as np
import pytest
from PIL import Image
from same_process import composcope
from untrained import untrained

from composcope.report.sheets import ASKED, FOUND, GAP, sheet

PLACES = ("--locations", "0.65,0.65 0.25,0.5")


@pytest.fixture
def command(capsys):
    """Run the command line; (exit code, standard output, standard error)."""

    def run(*words):
        code = 0
        try:
            composcope(*words)
        except SystemExit as stop:
            code = stop.code
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_a_sheet_shows_what_was_asked(tmp_path, command):
    run, out = untrained(tmp_path / "run", "exp1"), tmp_path / "sheet.png"
    words = ("sample", run, "--locations", "0.65,0.65 0.25,0.5", "--steps", 3, "--out", out)
    code, words_out, _ = command(*words, "-n", 3)
    assert code == 0 and words_out.startswith(f"{out}   next: composcope evaluate")
    with Image.open(out) as picture:
        first = np.asarray(picture)
    assert first.shape == (GAP + 132, GAP + 3 * 132, 3)
    for column in range(3):
        for u, v in ((0.65, 0.65), (0.25, 0.5)):
            assert tuple(first[GAP + int(v * 128), GAP + 132 * column + int(u * 128)]) == ASKED
    # The second image is the first of the next seed: a picture is of its seed, not of its batch.
    command(*words, "-n", 1, "--seed", 1)
    with Image.open(out) as picture:
        alone = np.asarray(picture)[:, GAP : GAP + 128].astype(int)
    assert np.abs(alone - first[:, GAP + 132 : GAP + 260]).max() <= 1
    assert np.abs(alone - first[:, GAP : GAP + 128]).max() > 1


def test_colors_and_solvers(tmp_path, command):
    run, sheets = untrained(tmp_path / "run", "color"), []
    for solver in ("heun", "euler", "stochastic"):
        words = ("--asked", "red blue", "-n", 2, "--steps", 3, "--solver", solver)
        words = (*words, "--out", tmp_path / "sheet.png")
        assert command("sample", run, *words)[0] == 0
        sheets.append((tmp_path / "sheet.png").read_bytes())
    assert len(set(sheets)) == 3


def test_an_intervention_changes_the_pictures(tmp_path, command):
    run, sheets = untrained(tmp_path / "run", "exp2"), []
    for words in ((), ("--intervention", "local"), ("--intervention", "local", "--radius", 0.5)):
        asked = ("--asked", "0.65,0.65 0.25,0.5", "-n", 1, "--steps", 2)
        assert command("sample", run, *asked, *words, "--out", tmp_path / "sheet.png")[0] == 0
        sheets.append((tmp_path / "sheet.png").read_bytes())
    assert len(set(sheets)) == 3


def test_what_is_wrong_is_said_in_one_sentence(tmp_path, command):
    run, colors = untrained(tmp_path / "run", "exp3"), untrained(tmp_path / "colors", "color")
    for words, sentence in (
        ((run, "--locations", "0.5"), "'0.5' is not \"u,v u,v ...\""),
        ((run, "--locations", "a,b"), 'is not "u,v u,v ..."'),
        ((run, "--locations", "0.5,7"), "within 0 to 1"),
        ((run, "--locations", "0.5,0.5 " * 13), "do not fit in a list of 12 slots"),
        ((run, "--asked", "red"), "'red' is not \"u,v u,v ...\""),
        ((colors, "--asked", "mauve"), "there is no colour 'mauve'"),
        ((run, "--intervention", "magic"), "there is no intervention 'magic'"),
        ((run, "--radius", "0.2"), "give --intervention local as well"),
        ((run, "--solver", "rk4"), "there is no solver 'rk4'"),
        ((run, "-n", "0"), "at least one image"),
        ((run, "--snapshot", "early"), "has not come so far"),
        ((tmp_path / "missing",), "there is no run"),
    ):
        code, _, error = command("sample", *words, "--out", tmp_path / "sheet.png")
        assert code == 2 and sentence in error and error.count("\n") == 1, (words, error)
    assert not (tmp_path / "sheet.png").exists()


@pytest.mark.parametrize(
    ("out", "sentence"),
    [(".", "is a folder"), ("x.jpg", "call it x.png, which is what is written"), ("x", "x.png")],
)
def test_what_is_no_name_of_a_sheet_is_refused_before_anything_is_drawn(command, out, sentence):
    code, _, error = command("sample", "missing", "--out", out)
    assert code == 2 and sentence in error


def test_rings_are_drawn_around_what_was_found():
    page = np.asarray(
        sheet(np.zeros((3, 32, 32, 3), np.uint8), found=[[(0.5, 0.5)], [], []], columns=2)
    )
    assert page.shape == (2 * 132 + GAP, 2 * 132 + GAP, 3)
    ring = page[GAP + 64, GAP + 64 - 8 : GAP + 64 + 9]
    assert tuple(ring[0]) == FOUND and tuple(ring[-1]) == FOUND and not ring[4:12].any()
    assert not page[GAP : GAP + 128, GAP + 132 : GAP + 260].any()  # nothing was found in the second
