"""Whole evaluations of drawers whose answer is known: exact denoisers that draw what is asked, or
less, or more."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from composcope.diffusion.denoiser import Wrapper
from composcope.errors import InputError
from composcope.evaluation import evaluate, evaluate_images, perfect, read_answers
from composcope.evaluation.accuracy import STILL
from composcope.evaluation.answers import write_answers
from composcope.evaluation.detect import fingerprint
from composcope.results import only, where
from composcope.results.arrays import read_origin
from composcope.results.samples import read_samples
from composcope.scenes.condition import PAPER_LOCATIONS, ColorCounts, LocationGrid, ShapeCounts


class Exact:
    """A denoiser that knows the one image of each cond, whatever x is: the sampler must end there.

    `change` alters the condition set before it is drawn."""

    shape = (3, 64, 64)

    def __init__(self, conditioner, change=lambda conditions: conditions, about=None):
        self.conditioner = conditioner
        self.change = change
        own = {"run": "exact", "weights": "0", "trained": 3, "labels": "all"}
        self.about = own | (about or {})
        self.calls = 0

    def __call__(self, x, sigma, cond):
        self.calls += 1
        sets = [self.change(self.conditions(row)) for row in cond]
        images = perfect(self.conditioner, sets, range(len(sets)), STILL, 64)
        return torch.from_numpy(images).permute(0, 3, 1, 2).float()

    def conditions(self, cond):
        parts = self.conditioner.split(cond)
        if self.conditioner.has_places:
            return [tuple(place) for place in self.conditioner.places(parts).tolist()]
        return [self.conditioner.names[index] for index in parts.argmax(1).tolist()]

    def decode(self, x):
        return x.round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()


GRID = LocationGrid(10)  # the paper's places are centres of its cells


def numbers(rows, what, **coordinates):
    return {row.K: row.value for row in where(rows, what=f"length/{what}", **coordinates)}


def k_maxes(rows):
    return {row.rule: row.value for row in where(rows, what="length/k_max")}


@pytest.mark.parametrize("conditioner", [GRID, ColorCounts(), ShapeCounts()], ids=lambda c: c.noun)
def test_a_perfect_drawer_reaches_all_that_was_asked(conditioner):
    rows = evaluate(Exact(conditioner), K=(0, 1, 3), num=4, steps=2)
    assert numbers(rows, "exact") == numbers(rows, "complete") == {0: 1, 1: 1, 3: 1}
    assert numbers(rows, "found") == numbers(rows, "drawn") == {0: 0, 1: 1, 3: 3}
    assert k_maxes(rows) == {"paper": 1, "strict": 1}  # two were not asked for
    assert {row.max_K for row in where(rows, what="length/k_max")} == {1}
    assert {(row.run, row.weights, row.trained, row.steps, row.seed) for row in rows} == {
        ("exact", "0", 3, 2, 0)
    }
    assert {row.asked for row in rows} == {conditioner.ways[0]}
    tolerances = {row.tolerance for row in rows if row.what != "length/evaluations"}
    assert tolerances == {0.1 if conditioner.has_places else None}
    assert only(rows, what="length/evaluations").value == 1
    found = only(rows, what="length/found", K=3)
    assert (found.low, found.high, found.n) == (3, 3, 4)


def test_one_that_drops_the_third_object_reaches_two():
    rows = evaluate(Exact(GRID, lambda conditions: conditions[:2]), K=range(5), num=3, steps=2)
    assert k_maxes(rows) == {"paper": 2, "strict": 2}
    assert numbers(rows, "missing") == {0: 0, 1: 0, 2: 0, 3: 1, 4: 2}
    assert numbers(rows, "count_error") == {0: 0, 1: 0, 2: 0, 3: 1, 4: 2}
    assert numbers(rows, "exact") == {0: 1, 1: 1, 2: 1, 3: 0, 4: 0}


def test_extra_objects_are_a_fault_unless_labels_left_objects_out():
    more = lambda conditions: [*conditions, (0.15, 0.85)]  # noqa: E731
    for labels, trained, expected in (("all", 3, 0), ("one", 3, 2), ("one", 1, 0)):
        drawer = Exact(GRID, more, {"labels": labels, "trained": trained})
        assert k_maxes(evaluate(drawer, K=(1, 2), num=2, steps=2))["paper"] == expected


def test_others_that_labels_leave_out_are_also_told_and_not_judged():
    corners = [(0.15, 0.85), (0.15, 0.6), (0.85, 0.85)]
    more = lambda conditions: [*conditions, *corners]  # noqa: E731
    rows = evaluate(Exact(GRID, more, {"labels": "one"}), K=(1, 2), num=8, steps=2)
    reached = {"paper": 0, "eight": 0, "strict": 0, "places": 2, "places_eight": 2}
    assert k_maxes(rows) == reached  # one label leaves two of three objects out, not three
    assert numbers(rows, "most_extra") == {1: 3, 2: 3}
    rows = evaluate(Exact(GRID, more), K=(1,), num=8, steps=2)  # all labels leave none out
    assert k_maxes(rows) == {"paper": 0, "eight": 0, "strict": 0}
    assert not numbers(rows, "most_extra")


def test_a_drawer_that_does_not_say_how_it_was_trained_has_no_rule_of_the_paper():
    drawer = Exact(GRID)
    drawer.about = {}
    rows = evaluate(drawer, K=(1, 2), num=2, steps=2)
    assert k_maxes(rows) == {"strict": 2}
    assert {row.run for row in rows} == {None}


@pytest.mark.parametrize("asked", [(0,), (2, 3)])
def test_without_one_object_asked_for_there_is_no_k_max(asked):
    rows = evaluate(Exact(GRID), K=asked, num=8, steps=2)
    assert numbers(rows, "exact") == dict.fromkeys(asked, 1.0)
    assert not k_maxes(rows)


def test_a_wrapper_is_evaluated_as_it_is_and_its_cost_is_told():
    class Thrice(Wrapper):
        changes = {"intervention": "thrice"}  # noqa: RUF012

        def __call__(self, x, sigma, cond):
            return sum(self.denoiser(x, sigma, cond) for _ in range(3)) / 3

    rows = evaluate(Thrice(Thrice(Exact(GRID))), K=(2,), num=1, steps=2)
    assert only(rows, what="length/evaluations").value == 9
    assert {row.intervention for row in rows} == {"thrice"}
    exact = only(rows, what="length/exact")
    # One image has no interval.
    assert (exact.value, exact.low, exact.high, exact.n) == (1, None, None, 1)


def test_what_is_kept_is_never_drawn_again_and_more_can_be_added(tmp_path):
    drawer = Exact(GRID)
    first = evaluate(drawer, K=(0, 2), num=3, steps=2, keep=tmp_path, batch=2)
    answers = read_answers(tmp_path / "K2.npz")
    assert answers.images.shape == (3, 64, 64, 3)
    assert answers.asked == [PAPER_LOCATIONS[:2]] * 3 and [
        len(found) for found in answers.found
    ] == [2, 2, 2]
    calls = drawer.calls
    again = evaluate(drawer, K=(0, 2), num=3, steps=2, keep=tmp_path, tolerance=1 / 16)
    assert drawer.calls == calls + 1  # the one that counts evaluations
    assert numbers(first, "found") == numbers(again, "found")
    evaluate(drawer, K=(0, 2), num=4, steps=2, keep=tmp_path)
    assert len(read_answers(tmp_path / "K2.npz").images) == 4
    np.testing.assert_array_equal(read_answers(tmp_path / "K2.npz").images[:3], answers.images)


def test_what_an_earlier_detector_found_is_found_anew_in_the_kept_images(tmp_path):
    drawer = Exact(GRID)
    first = evaluate(drawer, K=(2,), num=3, steps=2, keep=tmp_path)
    path = tmp_path / "K2.npz"
    answers, source = read_answers(path), read_origin(path)[0]
    assert answers.detector == fingerprint(64)[:8]
    judged = [row for row in first if row.what != "length/evaluations"]
    assert {row.detector for row in judged} == {answers.detector}
    write_answers(path, replace(answers, found=[[]] * 3, detector="earlier"), source)
    calls = drawer.calls
    again = evaluate(drawer, K=(2,), num=2, steps=2, keep=tmp_path)
    assert drawer.calls == calls + 1  # the one that counts evaluations
    assert only(again, what="length/exact").value == only(first, what="length/exact").value == 1
    kept = read_answers(path)
    assert kept.detector == answers.detector and kept.found == answers.found


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"seed": 1}, "seed = 0, not 1"),
        ({"steps": 3}, "steps = 2"),
        ({"way": "random"}, "asked = paper"),
    ],
)
def test_images_of_another_evaluation_are_not_taken_for_this_one(tmp_path, changes, setting):
    evaluate(Exact(GRID), K=(1,), num=1, steps=2, keep=tmp_path)
    with pytest.raises(InputError, match=f"K1\\.npz was made with {setting}"):
        evaluate(Exact(GRID), **{"K": (1,), "num": 1, "steps": 2, "keep": tmp_path} | changes)
    with pytest.raises(InputError, match=r"K1\.npz was made with weights = 0, not 1"):
        evaluate(Exact(GRID, about={"weights": "1"}), K=(1,), num=1, steps=2, keep=tmp_path)


def test_a_broken_file_of_answers_is_named(tmp_path):
    (tmp_path / "K1.npz").write_bytes(b"PK\3\4 and then nothing")
    with pytest.raises(InputError, match=r"K1\.npz does not hold kept arrays .* remove it"):
        evaluate(Exact(GRID), K=(1,), num=1, steps=2, keep=tmp_path)
    # As evaluations were kept once, with what they were made from among what was found.
    np.savez(tmp_path / "K1.npz", images=np.zeros((1, 64, 64, 3), np.uint8), record=np.zeros(9))
    with pytest.raises(InputError, match=r"K1\.npz does not hold kept arrays .* remove it"):
        evaluate(Exact(GRID), K=(1,), num=1, steps=2, keep=tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"num": 0}, "at least 1 image"),
        ({"steps": 1}, "2 steps"),
        ({"tolerance": 0.0}, "tolerance above 0"),
        ({"K": (-1, 2)}, "K is some of 0 to 12 for locations"),
        ({"K": (13,)}, "K is some of 0 to 12"),
        (
            {"way": "colours"},
            "locations are not chosen in the way 'colours'; the ways are paper, random",
        ),
        ({"solver": "rk4"}, "there is no solver 'rk4'; the solvers are heun, euler, stochastic"),
    ],
)
def test_bad_input_is_one_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        evaluate(Exact(GRID), **{"K": (1,), "num": 1, "steps": 2} | changes)
    with pytest.raises(InputError, match="no conditioner"):
        drawer = Exact(GRID)
        drawer.conditioner = None
        evaluate(drawer)


def test_a_way_that_is_none_is_refused_before_anything_is_shown(capsys):
    with pytest.raises(InputError, match="not chosen in the way 'colours'"):
        evaluate(Exact(GRID), K=(1,), num=1, steps=2, way="colours")
    assert not capsys.readouterr().err


@pytest.fixture
def folder(tmp_path):
    sets = [PAPER_LOCATIONS[:K] for K in range(4) for _ in range(2)]
    names = [f"{index}.png" for index in range(len(sets))]
    for name, image in zip(names, perfect(GRID, sets, range(len(sets)), STILL, 64), strict=True):
        Image.fromarray(image).save(tmp_path / name)
    (tmp_path / "asked.json").write_text(json.dumps(dict(zip(names, sets, strict=True))))
    return tmp_path


def test_images_made_elsewhere(folder):
    rows, answers = evaluate_images(folder, folder / "asked.json")
    assert numbers(rows, "exact") == {0: 1, 1: 1, 2: 1, 3: 1}
    assert k_maxes(rows) == {"paper": 3, "strict": 3}
    assert {row.run for row in rows} == {folder.name}
    assert [len(some.images) for some in answers.values()] == [2, 2, 2, 2]
    (folder / "asked.json").write_text(json.dumps({"3.png": ["cube"], "4.png": ["cube", "sphere"]}))
    rows, answers = evaluate_images(folder, folder / "asked.json")
    assert sorted(answers) == [1, 2] and {row.tolerance for row in rows} == {None}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("[1]", "goes by the names of images"),
        ('{"0.png": 3}', "what is asked of an image is a list, not 3"),
        ("{}", "asks for nothing, or for more than 12 locations"),
        (
            json.dumps({"0.png": [[0.5, 0.5]] * 13}),
            "asks for nothing, or for more than 12 locations",
        ),
        ('{"1.png": [[0.5, 0.5]], "0.png": [[0.5, 2.0]]}', ", 0.png: these conditions are not all"),
        ('{"0.png": ["red", [0.5, 0.5]]}', "not all of one kind"),
        ('{"none.png": [[0.5, 0.5]]}', "none.png cannot be read"),
        ('{"small.png": [], "0.png": []}', "differ in size"),
        ('{"text.png": []}', "text.png is neither a PNG"),
    ],
)
def test_bad_folders_are_named(folder, asked, sentence):
    Image.new("RGB", (32, 32)).save(folder / "small.png")
    (folder / "text.png").write_text("not a picture")
    (folder / "asked.json").write_text(asked)
    with pytest.raises(InputError, match=sentence):
        evaluate_images(folder, folder / "asked.json")


def test_a_few_images_are_kept_for_the_eye(tmp_path):
    """Those of the answers, which conditions are met, and a walk that ends in the first of K."""
    evaluate(Exact(GRID), K=(0, 3, 6), num=5, steps=3, keep=tmp_path)
    kept = read_samples(tmp_path / "samples.npz")
    assert [len(kept.of(K)) for K in (0, 3, 6)] == [2, 4, 4]
    answers = read_answers(tmp_path / "K6.npz")
    np.testing.assert_array_equal(kept.images[kept.of(6)], answers.images[:4])
    assert [kept.record.met[i] for i in kept.of(3)] == [[True] * 3] * 4
    assert kept.record.walked == list(PAPER_LOCATIONS[:6]) and kept.about["run"] == "exact"
    np.testing.assert_array_equal(kept.frames[-1], answers.images[0])
    assert len(kept.sigmas) == 4 and kept.sigmas[-1] == 0


def test_the_kept_walk_ends_in_the_first_image_with_fresh_noise_too(tmp_path):
    class Varied(Exact):
        """Images of a deviation of 30 around the one of each cond: where a walk ends is chance."""

        def __call__(self, x, sigma, cond):
            image = super().__call__(x, sigma, cond)
            share = 30**2 / (30**2 + sigma**2)
            return image + share[:, None, None, None] * (x - image)

    evaluate(Varied(GRID), K=(1,), num=1, steps=8, keep=tmp_path, solver="stochastic")
    kept = read_samples(tmp_path / "samples.npz")
    np.testing.assert_array_equal(kept.frames[-1], read_answers(tmp_path / "K1.npz").images[0])
