"""The whole audit of denoisers that are exactly local, ignore their conditions, act evenly or break
the contract."""

import numpy as np
import pytest
import torch

from composcope.adapters import Classes
from composcope.errors import InputError
from composcope.locality import LocalConditions, audit
from composcope.locality.audit import states_at
from composcope.locality.contract import condition_names
from composcope.locality.table import table_of
from composcope.results import row, where
from composcope.runs import load
from composcope.scenes.condition import ColorCounts, LocationGrid

GRID = LocationGrid(8)
SETS = [((0.19, 0.31), (0.56, 0.81)), ((0.94, 0.06),)]
SIGMAS = [5.0, 0.5]


def cells(cond, scale):
    return cond.view(-1, 1, 8, 8).repeat_interleave(scale, 2).repeat_interleave(scale, 3)


def local(x, sigma, cond):
    return 0.5 * x + cells(cond, x.shape[2] // 8) * sigma[:, None, None, None]


def even(x, sigma, cond):
    return x + cond.sum(1)[:, None, None, None]


def even_pixels(x, sigma, cond):
    return 0.5 * x + x.mean((2, 3), keepdim=True)


def bands(x, sigma, cond):
    """Colour k of eight paints the k-th eighth of the rows."""
    return 0.5 * x + cond[:, None, :, None].repeat_interleave(x.shape[2] // 8, 2)


def values(rows, what, **where_else):
    return [row.value for row in where(rows, what=f"locality/{what}", **where_else)]


class Lenient(LocationGrid):
    """A conditioner that takes any places, such as pixels; it is not even asked before audit has
    looked at them."""

    def __call__(self, condition_sets, seed=0):
        pytest.fail("asked")


@pytest.mark.parametrize("states", ["noised", "trajectory"])
@pytest.mark.parametrize("side", [16, 48])
def test_a_local_denoiser_has_locality_one_at_every_scale(states, side):
    report = audit(local, torch.randn(2, 3, side, side), SETS, GRID, SIGMAS, states=states)
    assert report.conditional_locality.value == pytest.approx(1.0, abs=1e-12)
    for what in ("square", "near_share", "own_share"):
        assert values(report.rows(), what) == pytest.approx([1.0] * 2, abs=1e-12)
    # Three channels of 0.5 at one pixel, eq. 9.
    assert values(report.rows(), "energy") == pytest.approx([1.5**2] * 2)
    # At both levels, and over both.
    assert values(report.rows(), "overlap") == pytest.approx([0.0] * 3)
    # One in a corner.
    assert report.chance == pytest.approx((2 * (3 / 8) ** 2 + (0.06 + 1.5 / 8) ** 2) / 3)


def test_an_image_of_which_nothing_is_asked_leaves_the_others_as_they_are():
    report = audit(local, torch.randn(3, 3, 16, 16), [(), *SETS], GRID, SIGMAS)
    assert values(report.rows(), "own_share") == pytest.approx([1.0] * 2)


def test_an_even_denoiser_has_chance_level_and_one_that_ignores_has_none():
    sets = [SETS[0], SETS[0]]
    report = audit(even, torch.randn(2, 3, 16, 16), sets, GRID, SIGMAS)
    assert report.conditional_locality.value == pytest.approx(report.chance)
    assert values(report.rows(), "own_share") == pytest.approx([0.5, 0.5])
    assert values(report.rows(), "overlap") == pytest.approx([1.0] * 3)
    ignoring = audit(lambda x, sigma, cond: x, torch.randn(2, 3, 16, 16), sets, GRID, SIGMAS)
    assert (ignoring.levels[0].influences == 0).all()
    assert np.isnan(ignoring.conditional_locality.value)
    assert values(ignoring.rows(), "conditional_locality") == [None]
    assert "no condition acts on any pixel" in ignoring.table()


def test_rows_and_table_hold_what_was_measured():
    pixels = [(2, 3), (13, 9)]
    report = audit(local, torch.randn(2, 3, 16, 16), [SETS[0]] * 2, GRID, SIGMAS, pixels)
    for sigma in SIGMAS:  # the pixels are in the cells of the two conditions
        there = {"sigma": sigma, "pixel": (2, 3), "condition": "0.19,0.31"}
        assert values(report.rows(), "influence", **there) == [0]
        there = {"sigma": sigma, "pixel": (13, 9), "condition": "0.56,0.81"}
        assert values(report.rows(), "influence", **there) == pytest.approx(
            [sigma * 3**0.5], rel=1e-5
        )
    assert {row.n for row in report.rows()} == {2} and {row.K for row in report.rows()} == {2}
    lines = report.table().splitlines()
    assert len(lines) == 1 + len(SIGMAS) + 2
    assert lines[-1].startswith("conditional locality 1.00 [1.00, 1.00], chance 0.")


def test_lines_of_the_table_fall_in_noise_also_where_pixels_are_measured_at_some_levels_only():
    rows = [row("locality/square", 3, sigma=sigma, pixel=(1, 1)) for sigma in (5.0, 0.5)]
    rows += [row("locality/overlap", 0.1, sigma=sigma, chance=0.2) for sigma in (5.0, 2.0, 0.5)]
    lines = table_of(rows).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["5.000", "2.000", "0.500"]


def test_without_conditions_only_pixels_are_measured():
    report = audit(lambda x, sigma, cond: 2 * x, torch.randn(2, 3, 16, 16), sigmas=SIGMAS)
    assert {row.what for row in report.rows()} == {"locality/square", "locality/energy"}
    assert "only pixels were measured" in report.table()
    assert len(report.plot().axes) == 2 * 2  # the image and one pixel, at two noise levels


def test_conditions_without_a_place_have_influences_and_overlap_and_no_share_near_one():
    asked = [("blue", "brown", "red")] * 2
    report = audit(
        bands, torch.randn(2, 3, 16, 16), asked, ColorCounts(), SIGMAS, pixels=[(0, 5), (13, 5)]
    )
    found = {row.what.removeprefix("locality/") for row in report.rows()}
    assert found == {"square", "energy", "overlap", "influence"}
    assert values(report.rows(), "overlap") == pytest.approx([0.0] * 3)
    for color, at_top, below in (("blue", 3**0.5, 0), ("brown", 0, 0), ("red", 0, 3**0.5)):
        here = {"sigma": 5.0, "condition": color}
        assert values(report.rows(), "influence", pixel=(0, 5), **here) == pytest.approx([at_top])
        assert values(report.rows(), "influence", pixel=(13, 5), **here) == pytest.approx([below])
    assert "no places: the share of influence near a place is left out" in report.table()
    # Fmt: skip.
    assert [axes.get_ylabel() for axes in report.plot().axes[::2]] == [
        "denoised",
        "pixel (0, 5)",
        "pixel (13, 5)",
        "blue",
        "brown",
        "red",
    ]


def test_of_classes_of_which_none_can_be_left_out_pixels_are_measured_as_asked():
    def bright(x, sigma, cond):
        """Class k sees its own pixel 1 + k times."""
        return x * (1 + cond.argmax(1))[:, None, None, None]

    report = audit(bright, torch.randn(2, 3, 8, 8), [(2,), (2,)], Classes(3), sigmas=SIGMAS)
    assert values(report.rows(), "energy") == pytest.approx([9.0**2] * 2)  # three channels of 3
    assert {row.what for row in report.rows()} == {"locality/square", "locality/energy"}
    assert "a class cannot be left out: only pixels were measured" in report.table()
    assert len(report.plot().axes) == 2 * 2
    with pytest.raises(InputError, match="there is no class 3"):
        audit(bright, torch.randn(1, 3, 8, 8), [(3,)], Classes(3), sigmas=SIGMAS)
    one = audit(bright, torch.randn(1, 3, 8, 8), [(2,)], Classes(3, null=0), sigmas=SIGMAS)
    assert "no image has two conditions that act: there is no overlap" in one.table()
    assert "overlap" not in one.table().splitlines()[0]


def test_a_wrapped_denoiser_is_measured_with_its_own_conditioner_and_its_rows_say_so():
    wrapped = LocalConditions(even, GRID)
    centres = ((0.1875, 0.3125), (0.5625, 0.8125))
    report = audit(wrapped, torch.randn(2, 3, 16, 16), [centres] * 2, sigmas=SIGMAS)
    assert report.conditional_locality.value == pytest.approx(1.0)
    assert {(row.intervention, row.radius) for row in report.rows()} == {("local", 0.1875)}


def test_audits_with_other_conditioners_have_rows_of_their_own():
    """Else the later one's rows would stand for both."""
    x = torch.zeros(1, 3, 8, 8)
    finer, coarser = (LocationGrid(cells) for cells in (8, 4))

    def keys(denoiser, conditioner):
        found = audit(denoiser, x, [[(0.25, 0.25)]], conditioner, [1.0], pixels=[])
        return {row.key for row in found.rows()}

    def plain(x, sigma, cond):
        return x * cond.sum()

    assert keys(plain, finer) == keys(plain, LocationGrid(8))
    assert not keys(plain, finer) & keys(plain, coarser)


def test_conditions_are_called_what_people_call_them():
    assert condition_names([(0.65, 0.25), "red", "red", 7]) == ("0.65,0.25", "red", "red #2", "7")


def test_images_may_be_part_of_a_graph():
    images = torch.randn(2, 3, 16, 16)
    report = audit(even_pixels, images.clone().requires_grad_(), sigmas=SIGMAS)
    assert report.table() == audit(even_pixels, images, sigmas=SIGMAS).table()


def test_places_may_be_the_rows_of_an_array():
    images = torch.randn(2, 3, 16, 16)
    sets = [tuple(np.array(SETS[0])) for _ in images]
    report = audit(local, images, sets, GRID, SIGMAS)
    assert report.conditions == ("0.19,0.31", "0.56,0.81")
    assert report.table() == audit(local, images, [SETS[0]] * 2, GRID, SIGMAS).table()


def test_a_name_with_dollars_is_drawn_as_it_is():
    class Prices(ColorCounts):
        def left_out(self, condition_set, seed=0):
            return super().left_out(("red",), seed)

        def __call__(self, condition_sets, seed=0):
            return super().__call__([("red",)] * len(condition_sets), seed)

    figure = audit(bands, torch.zeros(1, 3, 8, 8), [(r"$\nope$",)], Prices(), SIGMAS).plot()
    figure.draw_without_rendering()
    assert figure.axes[4].get_ylabel() == r"$\nope$"


def test_a_trajectory_is_the_same_whatever_level_is_looked_at_first():
    def exact(x, sigma, cond):  # of data N(3, 0.1^2) in every pixel
        s = sigma[:, None, None, None] ** 2
        return (0.01 * x + 3 * s) / (0.01 + s)

    images = torch.zeros(4, 3, 16, 16)
    for sigmas in ([80.0, 10.0, 0.5], [0.5]):
        state = states_at(exact, images, torch.tensor(sigmas), None, "trajectory", seed=0)[-1]
        assert state.mean() == pytest.approx(3, abs=0.1) and state.std() == pytest.approx(
            0.26**0.5, abs=0.05
        )


def test_what_looks_at_nothing_has_no_square():
    report = audit(lambda x, sigma, cond: 0 * x, torch.randn(2, 3, 16, 16), sigmas=[1.0])
    assert [row.what for row in report.rows() if row.value is None] == ["locality/square"]


def in_place(x, sigma, cond):
    return x.mul_(0.5)


class TooFew(LocationGrid):
    def left_out(self, condition_set, seed=0):
        return super().left_out(condition_set, seed)[1:]


class OneRow(LocationGrid):
    def __call__(self, condition_sets, seed=0):
        return super().__call__(condition_sets, seed)[:1]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"denoiser": torch.no_grad()(local)}, "gives no gradient"),
        (
            {"denoiser": lambda x, sigma, cond: x[:, :1]},
            r"returns \[2, 1, 16, 16\] for x of \[2, 3, 16, 16\]",
        ),
        ({"denoiser": lambda x, sigma, cond: (x,)}, "returns tuple for x"),
        ({"denoiser": lambda x, sigma, cond: x * torch.nan}, "not finite at sigma 5"),
        ({"denoiser": in_place}, "changes x in place"),
        ({"sigmas": [1.0, -1.0]}, "noise levels above 0"),
        ({"sigmas": []}, "at least one"),
        ({"states": "blurred"}, "not 'blurred'"),
        ({"states": "trajectory", "sigmas": [0.5, 5.0]}, "falling noise levels"),
        ({"condition_sets": SETS[:1]}, "1 condition sets for 2 images"),
        ({"condition_sets": None}, "a conditioner and nothing asked"),
        ({"condition_sets": ["red", "blue"]}, "put 'red' in brackets"),
        ({"conditioner": None}, "condition sets without a conditioner"),
        (
            {"conditioner": TooFew(8)},
            r"left_out of TooFew returns \[2, 64\] for 2 conditions, not 3 rows",
        ),
        ({"conditioner": OneRow(8)}, r"OneRow returns \[1, 64\] for 2 sets"),
        ({"conditioner": lambda sets, seed=0: torch.zeros(2, 64)}, "has no left_out"),
        (
            {"condition_sets": [((16.0, 16.0),)] * 2, "conditioner": Lenient(8)},
            r"\(16.0, 16.0\) is not in \[0, 1\]",
        ),
        ({"condition_sets": [("red",)] * 2}, "'red' is not a place"),
        ({"images": torch.zeros(0, 3, 16, 16), "condition_sets": []}, "0 images"),
        ({"images": torch.full((2, 3, 16, 16), torch.inf)}, "not finite"),
    ],
)
def test_what_cannot_be_measured_is_said(changes, sentence):
    asked = {
        "denoiser": local,
        "images": torch.randn(2, 3, 16, 16),
        "condition_sets": SETS,
        "conditioner": GRID,
    }
    with pytest.raises(InputError, match=sentence):
        audit(**asked | {"sigmas": SIGMAS} | changes)


def test_images_of_another_size_than_a_model_draws_are_told():
    with pytest.raises(InputError, match="have 32 x 32 pixels; exp2 draws 64 x 64"):
        audit(load("exp2"), torch.zeros(1, 3, 32, 32), sigmas=[1.0])
