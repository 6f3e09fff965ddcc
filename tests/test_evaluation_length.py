"""From what is asked to K_max, through the real detector: drawers whose answer is known."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from composcope.errors import InputError
from composcope.evaluation.detect import detect, load
from composcope.evaluation.k_max import Error, k_max, paper_rule, strict_rule
from composcope.evaluation.length import judge, judge_folder, length, sampler
from composcope.evaluation.oracle import ask, oracle
from composcope.scenes.condition import PAPER_LOCATIONS, ColorCounts, LocationGrid
from composcope.scenes.rules import Rules, sample

SIZE = 64


def k_maxes(draw, Ks=range(13), how="paper", num=8, extras=False):
    outcomes = {K: one.outcomes for K, one in length(draw, how, Ks, num, cell=1 / 16).items()}
    error = Error.of(load(SIZE)[1], how)
    return [k_max(outcomes, rule, extras, times=50).value for rule in (paper_rule(3, error), strict_rule)]


def test_the_oracle_reaches_twelve():
    assert k_maxes(oracle(SIZE)) == [12, 12]


def test_the_oracle_reaches_eight_colours():
    assert k_maxes(oracle(SIZE), range(9), "colors") == [8, 8]


def test_one_that_drops_the_third_object_reaches_two():
    perfect = oracle(SIZE)
    assert k_maxes(lambda sets, seeds: perfect([conditions[:2] for conditions in sets], seeds), range(5)) == [2, 2]


def test_one_that_always_draws_one_reaches_one():
    perfect = oracle(SIZE)
    assert k_maxes(lambda sets, seeds: perfect([PAPER_LOCATIONS[:1]] * len(sets), seeds), range(4)) == [1, 1]


def test_one_that_adds_an_object_reaches_nothing_unless_labels_left_objects_out():
    perfect = oracle(SIZE)
    adds = lambda sets, seeds: perfect([(*conditions, (0.8, 0.5)) for conditions in sets], seeds)  # noqa: E731
    assert k_maxes(adds, range(4)) == [0, 0]
    assert k_maxes(adds, range(4), extras=True) == [3, 3]


def test_an_object_between_two_places_is_reported_as_merged():
    images = oracle(SIZE)([[(0.5, 0.5)]] * 4, range(4))
    outcomes = judge(images, [[(0.45, 0.5), (0.55, 0.5)]] * 4, cell=1 / 16).outcomes
    assert [(o.found, o.missing, o.merged, o.extra) for o in outcomes] == [(1, 1, 1, 0)] * 4


def test_an_empty_image_is_no_error():
    (outcome,) = judge(np.zeros((1, SIZE, SIZE, 3), np.uint8), [[]], cell=1 / 16).outcomes
    assert (outcome.asked, outcome.drawn) == (0, 0)


def test_images_are_kept_and_never_drawn_twice(tmp_path):
    calls = []

    def draw(sets, seeds):
        calls.append(list(seeds))
        return np.stack([np.full((32, 32, 3), seed % 251, np.uint8) for seed in seeds])

    ask_for = lambda num: length(draw, "paper", [0, 2], num, 1 / 8, tmp_path, batch=4)  # noqa: E731
    first = ask_for(6)
    assert [len(seeds) for seeds in calls] == [4, 2, 4, 2]
    again = ask_for(6)
    assert len(calls) == 4
    more = ask_for(9)
    assert [len(seeds) for seeds in calls[4:]] == [3, 3]
    for K in (0, 2):
        assert np.array_equal(first[K].images, again[K].images)
        assert np.array_equal(first[K].images, more[K].images[:6])
    assert len({seed for seeds in calls for seed in seeds}) == 18


def test_a_broken_file_of_images_is_named(tmp_path):
    (tmp_path / "K0.npz").write_bytes(b"no")
    with pytest.raises(InputError, match=r"K0\.npz"):
        length(oracle(32), "paper", [0], 1, 1 / 8, tmp_path)


def test_the_sampler_draws_what_an_exact_denoiser_knows():
    """A denoiser of one image a condition: x0 is the mean brightness that the condition names, whatever the noise."""
    grid = LocationGrid(4)
    levels = torch.linspace(-1, 1, grid.features)

    def denoiser(x, sigma, cond):
        return (cond @ levels)[:, None, None, None].expand_as(x)

    draw = sampler(denoiser, grid, lambda x: ((x + 1) * 127.5).round().byte().permute(0, 2, 3, 1).numpy(), (3, 8, 8), 4)
    images = draw([[(0.0, 0.0)], [(0.99, 0.99)], [(0.3, 0.0)]], [5, 6, 7])
    assert [np.unique(image).tolist() for image in images] == [[0], [255], [17]]


def test_what_is_asked():
    assert ask("paper", 2, 3) == [PAPER_LOCATIONS[:2]] * 3
    random = ask("random", 5, 4)
    assert all(len(places) == 5 for places in random) and len(set(random)) == 4
    trained = {place for index in range(64) for place in sample(0, index, Rules((1, 3))).places}
    assert not trained & {place for places in ask("random", 3, 64) for place in places}  # of scenes never trained on
    colors = ask("colors", 8, 4)
    assert ColorCounts()(colors).eq(1).all() and len(set(colors)) > 1
    with pytest.raises(InputError, match="up to 8"):
        ask("colors", 9, 1)


@pytest.fixture
def folder(tmp_path):
    asked = {f"{K}-{i}.png": PAPER_LOCATIONS[:K] for K in (0, 1, 3) for i in range(2)}
    for name, image in zip(asked, oracle(SIZE)(list(asked.values()), range(6)), strict=True):
        Image.fromarray(image).save(tmp_path / name)
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    return tmp_path


def test_a_folder_of_images(folder):
    judged = judge_folder(folder, folder / "asked.json", 1 / 16)
    assert {K: [(o.found, o.extra) for o in one.outcomes] for K, one in judged.items()} == {
        K: [(K, 0)] * 2 for K in (0, 1, 3)
    }


@pytest.mark.parametrize(
    "said, named",
    [
        ("{", "asked.json"),
        ('["a.png"]', "asked.json"),
        ('{"0-0.png": [[0.5]]}', "asked.json"),
        ('{"0-0.png": [[0.5, 1.5]]}', "1.5"),
        ('{"0-0.png": ["pink"]}', "pink"),
        ('{"none.png": []}', "none.png"),
        ('{"asked.json": []}', "asked.json"),
    ],
)
def test_bad_folders_are_named(folder, said, named):
    (folder / "asked.json").write_text(said)
    with pytest.raises(InputError, match=named):
        judge_folder(folder, folder / "asked.json", 1 / 16)


def test_images_of_different_sizes_are_refused(folder):
    Image.new("RGB", (9, 9)).save(folder / "0-0.png")
    with pytest.raises(InputError, match="differ in size"):
        judge_folder(folder, folder / "asked.json", 1 / 16)


def test_an_array_may_be_turned_around():
    images = oracle(SIZE)([PAPER_LOCATIONS[:2]], [0])
    assert len(detect(images[:, :, ::-1])[0]) == 2
