"""The main job, small: scenes, shipped models drawn live and looked at, the page, and what to do
next."""

import shutil

import pytest
from PIL import Image

from composcope.cli import demo
from composcope.evaluation import read_answers
from composcope.results import read_rows, where
from composcope.runs.model import SHIPPED


def test_the_demo_leaves_pictures_rows_and_a_page(tmp_path, monkeypatch, capfd):
    """Two of its drawers and one of its looks; one that does not ship is said to be missing."""
    monkeypatch.setattr(demo, "DRAWN", (("exp1", False), ("exp2", True), ("exp9", False)))
    monkeypatch.setattr(demo, "LOOKED_AT", ("exp1",))
    # Of all that ships, tests/test_readme.py and tests/test_report_browser.py make the page.
    shutil.copytree(SHIPPED / "exp1", tmp_path / "ships" / "exp1")
    monkeypatch.setattr(demo, "SHIPPED", tmp_path / "ships")
    demo.main(demo.Args(out=tmp_path, num=1, steps=2))
    with Image.open(tmp_path / "scenes.png") as picture:
        assert picture.width > 900
    (file,) = tmp_path.glob("live/*/rows.jsonl")
    found = where(read_rows(file), what="length/found")
    asked = [(row.run, row.intervention, row.K) for row in found]
    assert asked == [(*who, K) for who in (("exp1", None), ("exp2", "local")) for K in demo.K_SHOWN]
    assert len(read_answers(file.parent / "exp2 with local conditions" / "K9.npz").images) == 1
    assert where(read_rows(file), what="locality/conditional_locality", run="exp1")
    told = capfd.readouterr().out
    assert "exp9 does not ship" in told and "composcope explore" in told.splitlines()[-1]
    page = (tmp_path / "index.html").read_text()
    assert len(page) > 10_000 and "exp1" in page and "exp2 + local conditions" in page


def test_what_the_demo_shows_is_of_the_study():
    from composcope.study.table import BY_NAME

    assert {run for run, _ in demo.DRAWN} | set(demo.LOOKED_AT) <= set(BY_NAME)


@pytest.mark.parametrize("run", sorted({run for run, _ in demo.DRAWN}))
def test_what_the_demo_draws_ships(run):
    assert (SHIPPED / run / "model.safetensors").exists()
