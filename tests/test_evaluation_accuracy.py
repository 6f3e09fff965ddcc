"""The detector's own error: measured once, kept, and measured again when anything behind it
changes."""

from functools import partial

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation import Answers, accuracy, judging
from composcope.scenes.condition import LocationGrid

SIDE = (32, 32)


@pytest.fixture
def measured(monkeypatch) -> list[tuple]:
    """The K of every measurement that is made."""
    asked: list[tuple] = []
    misjudged = accuracy.misjudged

    def counted(find, conditioner, way, view, tolerances, size, scenes, Ks):
        asked.append(tuple(Ks))
        return misjudged(find, conditioner, way, view, tolerances, size, scenes, Ks)

    monkeypatch.setattr(accuracy, "misjudged", counted)
    return asked


def test_what_was_measured_is_not_measured_again_here_or_beside(measured, tmp_path):
    def error(Ks, folder="one", tolerance=0.15, scenes=4):
        where = None if folder is None else tmp_path / folder
        return accuracy.error_of(
            LocationGrid(8), "random", "full", tolerance, SIDE, Ks, scenes, where
        )

    first = error([0, 1])
    assert measured == [(0, 1)] and set(first.right) == {0, 1}
    assert error([0, 1]) == first and error([1], "other") == first
    assert measured == [(0, 1)]
    more = error([0, 1, 2], "other")
    assert measured[1:] == [(2,)]
    assert more == error([0, 1, 2], None)  # as when all is measured at once
    assert {K: more.right[K] for K in (0, 1)} == first.right
    del measured[:]
    error([1], tolerance=0.16)
    error([1], scenes=3)
    error([1], folder=None)
    assert measured == [(1,), (1,), (1,)]


def test_what_ships_is_taken_from_there(measured, tmp_path):
    known = accuracy.load_detector(32)[1].errors[0]
    conditioner = LocationGrid(8)
    assert known.noun == conditioner.noun and known.tolerance is not None
    asked = conditioner, known.way, known.view, known.tolerance, SIDE, [1, 2]
    error = accuracy.error_of(*asked, keep=tmp_path / "one")
    assert (error.scenes, error.right) == (known.scenes, known.right)
    assert not measured and not (tmp_path / "one").exists()


def test_another_detector_or_a_damaged_file_is_not_taken(measured, monkeypatch, tmp_path):
    asked = LocationGrid(8), "random", "full", 0.15, SIDE, [1], 2, tmp_path / "one"
    accuracy.error_of(*asked)
    monkeypatch.setattr(accuracy, "fingerprint", lambda size: "other weights")
    accuracy.error_of(*asked)
    assert measured == [(1,), (1,)]
    for path in (tmp_path / "one").iterdir():
        path.write_text("{")
    with pytest.raises(InputError, match=r"detector-\w+\.json"):
        accuracy.error_of(*asked)


def test_only_what_no_scene_can_show_leaves_the_error_unknown(monkeypatch, tmp_path):
    answers = {1: Answers(np.zeros((1, *SIDE, 3), np.uint8), [((0.5, 0.5),)], [[]])}
    keep = tmp_path / "one"
    few = partial(accuracy.error_of, scenes=2)
    monkeypatch.setattr(judging, "error_of", few)

    def known(tolerance=0.15, view="full"):
        return judging.known_error(LocationGrid(8), "random", view, tolerance, answers, keep)

    assert known() is not None
    (kept,) = keep.iterdir()
    kept.write_text("{")
    with pytest.raises(InputError, match=r"detector-\w+\.json"):
        known()
    with pytest.raises(InputError, match="there is no view 'squre'"):
        known(0.16, "squre")

    def none(self, condition_set, seed, rules):
        raise InputError("no scene shows this")

    monkeypatch.setattr(LocationGrid, "scene", none)
    assert known(0.17) is None
