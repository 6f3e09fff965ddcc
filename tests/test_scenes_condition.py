"""Conditioners: what cond says, that it is the sum of its parts, and who is labelled."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from composcope.errors import InputError
from composcope.scenes import (
    LABELS,
    PAPER_LOCATIONS,
    ColorCounts,
    LocationGrid,
    LocationList,
    Object,
    Rules,
    Scene,
)
from composcope.scenes.condition import CONDITIONERS, Vocabulary
from composcope.scenes.labels import apply_policy
from composcope.scenes.scene import COLORS

locations = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12).map(tuple)
colors = st.lists(st.sampled_from(list(COLORS)), max_size=12).map(tuple)
cases = st.one_of(
    st.tuples(st.integers(1, 20).map(LocationGrid), locations),
    st.tuples(st.sampled_from([LocationList(12), LocationList(12, "packed")]), locations),
    st.tuples(st.just(LocationList(shared=True)), locations),
    st.tuples(st.just(ColorCounts()), colors),
)


@settings(max_examples=100, deadline=None)
@given(cases, st.integers(0, 2**64))
def test_cond_is_the_sum_of_its_parts_and_leaving_one_out_subtracts_it(case, seed):
    conditioner, conditions = case
    cond = conditioner([conditions], seed)[0]
    rows = conditioner.left_out(conditions, seed)
    parts = conditioner.split(cond)
    assert cond.shape == (conditioner.features,)
    assert torch.equal(rows[0], cond)
    assert len(parts) == len(conditions)
    assert torch.equal(parts.sum(0), cond)
    assert len(rows) == len(conditions) + 1
    left = sorted((cond - row).tolist() for row in rows[1:])
    torch.testing.assert_close(left, sorted(parts.tolist()), atol=1e-6, rtol=0)


def test_the_grid_counts_centres_row_by_row():
    cond = LocationGrid(4)([((0.1, 0.9), (0.2, 0.8), (1.0, 0.0)), ()])
    expected = torch.zeros(2, 4, 4)
    expected[0, 3, 0], expected[0, 0, 3] = 2, 1
    assert torch.equal(cond.reshape(2, 4, 4), expected)


def test_places_are_where_the_conditions_are():
    grid, sparse = LocationGrid(16), LocationList()
    cells = grid.places(grid.split(grid([PAPER_LOCATIONS])[0]))
    near = (cells[:, None] - torch.tensor(PAPER_LOCATIONS)).abs().amax(2).amin(1)
    assert near.max() <= 0.5 / 16 + 1e-6
    slots = sparse.places(sparse.split(sparse([PAPER_LOCATIONS], 5)[0]))
    apart = (slots[:, None] - torch.tensor(PAPER_LOCATIONS)).abs().amax(2)
    assert apart.amin(0).max() < 1e-4 and apart.amin(1).max() < 1e-4
    with pytest.raises(InputError, match="no place"):
        ColorCounts().places(ColorCounts()([("red",)]))


def test_words_with_commas_of_their_own_can_be_asked():
    words = Vocabulary(("cat", "red", "a, comma", "a, comma, twice", "x,y"))
    assert words.parse("cat, red") == ("cat", "red")
    assert words.parse("red, a, comma, cat") == ("red", "a, comma", "cat")
    assert words.parse("a,comma,twice, x, y") == ("a, comma, twice", "x,y")
    with pytest.raises(InputError, match="no word 'a'; the words are cat, red"):
        words.parse("a, cat")
    many = Vocabulary(tuple(f"w{number}" for number in range(1000)))
    assert many.parse("w1 w2, w3") == ("w1", "w2", "w3")
    with pytest.raises(InputError, match=r"w23 and 976 more$"):
        many.parse("word")


def wave_product(u, v, f, g):
    return math.cos(math.pi * f * u) * math.cos(math.pi * g * v)


def test_a_packed_list_fills_slots_in_order_and_a_scattered_one_all_of_them():
    sets = [((0.25, 0.5), (0.75, 0.125))] * 400
    packed = LocationList(12, "packed")(sets).reshape(400, 12, 64)
    expected = torch.tensor(
        [[wave_product(u, v, f, g) for f in range(8) for g in range(8)] for u, v in sets[0]]
    )
    torch.testing.assert_close(packed[7, :2], expected / expected.norm(dim=1, keepdim=True))
    assert not packed[:, 2:].any()
    scattered = LocationList(12)(sets).reshape(400, 12, 64)
    used = (scattered[:, :, 0] > 0).sum(0)
    assert used.sum() == 800
    assert used.min() > 800 / 12 - 4 * (800 / 12) ** 0.5


def test_a_row_does_not_depend_on_its_batch():
    sets = [PAPER_LOCATIONS[:k] for k in range(12)]
    whole = LocationList()(sets, seed=100)
    assert torch.equal(
        torch.cat([LocationList()(sets[:5], 100), LocationList()(sets[5:], 105)]), whole
    )


def test_colours_are_counted_in_the_papers_order():
    three = ("yellow", "blue", "yellow")
    scene = Scene(tuple(Object("cube", "small", "metal", color, 0, 0) for color in three))
    assert ColorCounts().of(scene) == ("yellow", "blue", "yellow")
    assert ColorCounts()([ColorCounts().of(scene)]).tolist() == [[1, 0, 0, 0, 0, 0, 0, 2]]
    assert list(COLORS) == ["blue", "brown", "cyan", "gray", "green", "purple", "red", "yellow"]


@pytest.mark.parametrize("labels", LABELS)
def test_label_policies_keep_their_share_and_every_object_in_turn(labels):
    kept = [apply_policy("abcd", labels, seed) for seed in range(2000)]
    counts = torch.tensor([len(k) for k in kept])
    numbers = {"all": {4}, "one": {1}, "random": {1, 2, 3, 4}, "all_but_one": {3}}[labels]
    assert set(counts.tolist()) == numbers
    assert all(tuple(sorted(set(k))) == k for k in kept)
    share = sum(numbers) / len(numbers) / 4
    for letter in "abcd":
        assert abs(sum(letter in k for k in kept) / 2000 - share) < 4 * (0.25 / 2000) ** 0.5
    for number in numbers:
        expected = 1 / len(numbers)
        assert (
            abs((counts == number).float().mean() - expected)
            <= 4 * (expected * (1 - expected) / 2000) ** 0.5
        )
    assert apply_policy((), labels, 0) == ()


def test_one_of_one_is_all_and_all_but_one_of_one_is_none():
    assert apply_policy("a", "one", 3) == apply_policy("a", "random", 3) == ("a",)
    assert apply_policy("a", "all_but_one", 3) == ()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: LocationGrid(8)([((0.5, 1.1),)]), r"\(0.5, 1.1\)"),
        (lambda: LocationGrid(8)([((float("nan"), 0.1),)]), "nan"),
        (lambda: LocationGrid(8)([(0.5, 0.5)]), "the location 0.5 is not"),
        (lambda: LocationList()([(*PAPER_LOCATIONS, (0.1, 0.1))]), "13 locations"),
        (lambda: ColorCounts()([("pink",)]), "no colour 'pink'"),
        (lambda: apply_policy("ab", "none", 0), "no label policy 'none'"),
        (lambda: LocationGrid(0), "1 to 256 cells a side, not 0"),
        (lambda: LocationGrid(8).parse("0.5,0.5 0.1"), "such as"),
        (lambda: LocationGrid(8).parse("0.5,nan"), "within 0 to 1"),
        (lambda: LocationGrid(8).ask(13, 1), "from 0 to 12"),
        (lambda: LocationGrid(8).condition("cat", "row 1"), "of words: --conditioner vocabulary"),
        (
            lambda: LocationGrid(8).ask(1, 1, way="best"),
            "in the way 'best'; the ways are paper, random",
        ),
        (lambda: ColorCounts().parse("red pink"), "no colour 'pink'"),
    ],
)
def test_what_cannot_be_asked_is_named(ask, words):
    with pytest.raises(InputError, match=words):
        ask()


@pytest.mark.parametrize("name", CONDITIONERS)
def test_what_a_conditioner_asks_for_is_in_its_scene_and_comes_back_from_its_words(name):
    conditioner = CONDITIONERS[name](16)
    for way in conditioner.ways:
        K = min(3, conditioner.most)
        first, second = conditioner.ask(K, 2, seed=5, way=way)
        assert len(set(first)) == K
        assert conditioner.ask(K, 2, seed=5, way=way) == [first, second]
        scene = conditioner.scene(first, 7, Rules(view="square"))
        met = conditioner.of(scene)
        if conditioner.has_places:
            assert torch.tensor(met).sub(torch.tensor(first)).abs().max() < 1e-6
        else:
            assert met == tuple(first)
    assert len(conditioner.parse(conditioner.like)) == 2
    assert conditioner([conditioner.parse(conditioner.like)]).shape == (1, conditioner.features)


def test_cells_that_are_neighbours_begin_alike():
    likeness = torch.from_numpy(LocationGrid(16).likeness(8))
    cosines = likeness @ likeness.T
    torch.testing.assert_close(cosines.diagonal(), torch.ones(256).double())
    middle = 8 * 16 + 8
    assert cosines[middle, middle + 1] > 0.7
    assert cosines[middle].abs().mean() < 0.3
