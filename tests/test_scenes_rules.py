"""The placement rules, checked on the finished scenes from the official generator's description of
them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.errors import InputError
from composcope.scenes import Rules, project, sample, visible_pixels
from composcope.scenes.condition import PAPER_LOCATIONS
from composcope.scenes.rules import TABLES, draw
from composcope.scenes.scene import CAMERA, LAMPS, Scene, camera_axes

seeds = st.integers(0, 2**63)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(0, 10**9), st.integers(0, 10))
def test_every_scene_keeps_all_rules(seed, index, count):
    scene = sample(seed, index, Rules(objects=(count, count)))
    assert len(scene.objects) == count
    right, _, ahead = camera_axes(scene.camera)
    behind = np.array([*ahead[:2], 0]) / np.hypot(*ahead[:2])
    for a, b in combinations(scene.objects, 2):
        difference = np.array([a.x - b.x, a.y - b.y, 0])
        assert np.linalg.norm(difference) - a.radius - b.radius >= 0.25
        assert abs(difference @ right) >= 0.4
        assert abs(difference @ behind) >= 0.4
    assert all(abs(o.x) <= 3 and abs(o.y) <= 3 and 0 <= o.rotation < 360 for o in scene.objects)
    assert np.abs(np.subtract(scene.camera, CAMERA)).max() <= 0.5
    for lamp, base in zip((scene.key, scene.fill, scene.back), LAMPS.values(), strict=True):
        assert np.abs(np.subtract(lamp, base)).max() <= 1
    assert all(visible_pixels([scene])[0] >= 200)


@settings(max_examples=15, deadline=None)
@given(seeds, st.integers(3, 8))
def test_scenes_refused_for_hidden_objects_are_those_the_full_count_refuses(seed, count):
    """The rule stops counting at enough pixels; the renderer counts them all. Same attempts, so
    same scenes."""
    loose = draw(seed, 0, 20, Rules(objects=(count, count), min_pixels=0))
    strict = draw(seed, 0, 20, Rules(objects=(count, count)))
    for a, b, pixels in zip(loose, strict, visible_pixels(loose), strict=True):
        assert (a == b) == (pixels.min() >= 200)


def test_a_scene_depends_on_seed_and_index_alone():
    rules = Rules(objects=(1, 6))
    scenes = [sample(7, 100 + i, rules) for i in range(12)]
    assert scenes == draw(7, 100, 12, rules)
    assert len(set(scenes)) == 12
    assert sample(8, 100, rules) != scenes[0]


def test_every_kind_is_drawn_and_each_as_often():
    scenes = draw(0, 0, 3000, Rules(objects=(1, 3), min_pixels=0))
    firsts = [scene.objects[0] for scene in scenes]
    kinds = [([len(scene.objects) for scene in scenes], (1, 2, 3))]
    for name, table in TABLES.items():
        kinds.append(([getattr(thing, name[:-1]) for thing in firsts], table))
    for values, table in kinds:
        p = 1 / len(table)
        counts = np.array([values.count(value) for value in table])
        assert np.abs(counts - 3000 * p).max() < 4 * np.sqrt(3000 * p * (1 - p))


def test_only_what_the_rules_name_is_drawn_and_a_fixed_scene_stays():
    rules = Rules(
        (2, 2), ("sphere",), ("large",), ("metal",), ("red", "cyan"), camera_jitter=0, lamp_jitter=0
    )
    scenes = [sample(0, i, rules) for i in range(20)]
    looks = {(o.shape, o.size, o.material) for s in scenes for o in s.objects}
    assert looks == {("sphere", "large", "metal")}
    assert {o.color for s in scenes for o in s.objects} == {"red", "cyan"}
    assert {Scene((), s.camera, s.key, s.fill, s.back) for s in scenes} == {Scene()}


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(0, 12))
def test_objects_stand_at_given_places(seed, count):
    scene = sample(seed, 3, Rules(), PAPER_LOCATIONS[:count])
    off = np.array(scene.places).reshape(-1, 2) - np.array(PAPER_LOCATIONS[:count]).reshape(-1, 2)
    assert np.abs(off).max(initial=0) < 1e-6
    assert len(scene.objects) == count
    for a, b in combinations(scene.objects, 2):
        assert np.hypot(a.x - b.x, a.y - b.y) >= a.radius + b.radius


def test_a_place_is_where_the_object_is_projected():
    scene = sample(1, 1, Rules(), [(0.3, 0.6)])
    (o,) = scene.objects
    assert project(scene.camera, (o.x, o.y, o.radius))[:2] == pytest.approx((0.3, 0.6), abs=1e-9)


@pytest.mark.parametrize(
    ("rules", "places", "words"),
    [
        (Rules((40, 40)), None, "no scene of 40 objects"),
        (Rules((2, 2), min_pixels=100_000), None, "100000 visible pixels"),
        (Rules(), [(0.5, 0.5), (0.5, 0.5)], "too close"),
        (Rules(), [(0.5, 0.5), (0.5, 0.0)], r"\(0.5, 0.0\).*not on the flat ground"),
        (Rules(camera_jitter=1e-9), [(0.5, 0.01)], "not on the flat ground"),
        (Rules(), [(1.2, 0.6)], r"not all in \[0, 1\]"),
    ],
)
def test_what_cannot_be_ends_in_an_error(rules, places, words):
    with pytest.raises(InputError, match=words):
        sample(0, 0, rules, places)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"objects": (3, 1)}, "not 3-1"),
        ({"objects": (1, 1000)}, "not 1-1000"),
        ({"shapes": ("cone",)}, "shapes .* not cone"),
        ({"colors": ()}, "colors .* not none"),
        ({"margin": float("nan")}, "margin"),
        ({"camera_jitter": -1.0}, "camera_jitter"),
    ],
)
def test_rules_name_the_field_that_is_wrong(wrong, words):
    with pytest.raises(InputError, match=words):
        Rules(**wrong)
