"""Matching on hand-made images whose outcome is known, and against the best of all pairings."""

from itertools import permutations

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation.detect import Found
from composcope.evaluation.matching import Outcome, match, match_places
from composcope.scenes.condition import ColorCounts, LocationGrid, ShapeCounts


def objects(*places, color="red"):
    return [Found(x, y, color, "cube", "small", 1.0) for x, y in places]


ASKED = [(0.2, 0.2), (0.5, 0.5), (0.8, 0.2)]


@pytest.mark.parametrize(
    "found, outcome",
    [
        (objects(*ASKED), Outcome(3, 3, 0)),
        (objects(), Outcome(3, 0, 0)),
        (objects((0.2, 0.2), (0.5, 0.5)), Outcome(3, 2, 0)),
        (objects(*ASKED, (0.5, 0.9)), Outcome(3, 3, 1)),
        (objects((0.5, 0.9)), Outcome(3, 0, 1)),
        (
            objects((0.32, 0.08)),
            Outcome(3, 1, 0),
        ),  # less than a cell along each axis, though 0.17 away
        (objects((0.33, 0.2)), Outcome(3, 0, 1)),  # more than a cell along one
    ],
)
def test_places(found, outcome):
    assert match_places(ASKED, found, tolerance=0.125) == outcome


def test_an_object_between_two_asked_places_merges_them():
    assert match_places(
        [(0.45, 0.5), (0.55, 0.5)], objects((0.5, 0.5)), tolerance=0.125
    ) == Outcome(2, 1, 0, merged=1)


def test_an_object_elsewhere_merges_nothing():
    assert match_places(
        [(0.45, 0.5), (0.55, 0.5)], objects((0.45, 0.9)), tolerance=0.125
    ) == Outcome(2, 0, 1, merged=0)


def test_nothing_asked_and_nothing_found():
    assert match_places([], [], tolerance=0.1) == Outcome(0, 0, 0)
    assert match_places([], objects((0.1, 0.1)), tolerance=0.1) == Outcome(0, 0, 1)


def test_most_pairs_come_before_near_ones():
    # The nearest pair (0.50, 0.51) would leave the other two apart by two cells.
    found = objects((0.49, 0.5), (0.6, 0.5))
    assert match_places([(0.4, 0.5), (0.5, 0.5)], found, tolerance=0.1).found == 2


def test_as_many_pairs_as_the_best_of_all_pairings():
    rng = np.random.default_rng(0)
    for _ in range(100):
        asked, places = rng.random((4, 2)), rng.random((4, 2))
        near = np.abs(asked[:, None] - places).max(-1) <= 0.3
        best = max(sum(near[i, j] for i, j in enumerate(order)) for order in permutations(range(4)))
        outcome = match_places([tuple(a) for a in asked], objects(*places), tolerance=0.3)
        assert (outcome.found, outcome.extra) == (best, 4 - best)


def test_conditions_without_places_are_counted_wherever_they_are():
    found = objects((0.1, 0.1), (0.2, 0.2)) + objects((0.3, 0.3), color="blue")
    assert match(ColorCounts(), ["red", "blue", "green"], found, tolerance=0.1) == Outcome(3, 2, 1)
    assert match(ColorCounts(), ["red", "red", "blue"], found, tolerance=0.1) == Outcome(3, 3, 0)
    assert match(ShapeCounts(), ["cube", "sphere"], found, tolerance=0.1) == Outcome(2, 1, 2)


def test_conditions_with_places_are_matched_by_distance():
    found = objects((0.25, 0.25), (0.9, 0.9))
    assert match(LocationGrid(4), [(0.2, 0.2)], found, tolerance=0.1) == Outcome(1, 1, 1)


def test_what_the_detector_does_not_find_cannot_be_counted():
    class Materials(ShapeCounts):
        noun = "material"

        def read(self, thing, place):
            return thing.material

    with pytest.raises(InputError, match=r"py, line \d+: .*material.* `countable = False`"):
        match(Materials(), ["rubber"], [Found(0.5, 0.5, "red", "cube", "large", 1.0)], 0.1)
