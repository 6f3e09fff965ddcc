"""The whole report on denoisers that are exactly local, ignore their conditions, or act evenly."""

import numpy as np
import pytest
import torch

from composcope.errors import InputError
from composcope.locality import audit
from composcope.locality.audit import states_at
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


class Lenient(LocationGrid):
    """A conditioner that takes any places, such as pixels; it is not even asked before audit has looked at them."""

    def __call__(self, condition_sets, seed=0):
        pytest.fail("asked")


@pytest.mark.parametrize("states", ["noised", "trajectory"])
@pytest.mark.parametrize("side", [16, 48])
def test_a_local_denoiser_has_locality_one_at_every_scale(states, side):
    report = audit(local, torch.randn(2, 3, side, side), SETS, GRID, SIGMAS, states=states)
    assert report.conditional_locality.value == pytest.approx(1.0, abs=1e-12)
    ones = [row.estimate.value for row in report.rows if row.name in ("square", "near_share", "own_share")]
    assert ones == pytest.approx([1.0] * len(ones), abs=1e-12) and len(ones) == 6
    energies = [row.estimate.value for row in report.rows if row.name == "energy"]
    assert energies == pytest.approx([1.5**2] * 2)  # three channels of 0.5 at one pixel, eq. 9
    assert report.chance == pytest.approx((2 * (3 / 8) ** 2 + (0.06 + 1.5 / 8) ** 2) / 3)  # one in a corner


def test_an_image_of_which_nothing_is_asked_leaves_the_others_as_they_are():
    report = audit(local, torch.randn(3, 3, 16, 16), [(), *SETS], GRID, SIGMAS)
    assert [row.estimate.value for row in report.rows if row.name == "own_share"] == pytest.approx([1.0] * 2)


def test_an_even_denoiser_has_chance_level_and_one_that_ignores_has_none():
    sets = [SETS[0], SETS[0]]
    report = audit(even, torch.randn(2, 3, 16, 16), sets, GRID, SIGMAS)
    assert report.conditional_locality.value == pytest.approx(report.chance)
    own = [row.estimate.value for row in report.rows if row.name == "own_share"]
    assert own == pytest.approx([0.5, 0.5])
    ignoring = audit(lambda x, sigma, cond: x, torch.randn(2, 3, 16, 16), sets, GRID, SIGMAS)
    assert (ignoring.levels[0].influences == 0).all()
    assert np.isnan(ignoring.conditional_locality.value)


def test_rows_and_table_hold_what_was_measured():
    pixels = [(2, 3), (13, 9)]
    report = audit(local, torch.randn(2, 3, 16, 16), [SETS[0]] * 2, GRID, SIGMAS, pixels)
    influence = {
        (row.setting["sigma"], tuple(row.setting["pixel"]), row.setting["condition"]): row.estimate.value
        for row in report.rows
        if row.name == "influence"
    }
    for sigma in SIGMAS:  # the pixels are in the cells of the two conditions
        assert influence[sigma, (2, 3), 0] == 0
        assert influence[sigma, (13, 9), 1] == pytest.approx(sigma * 3**0.5, rel=1e-5)
    lines = report.table().splitlines()
    assert len(lines) == 1 + len(SIGMAS) + 1
    assert lines[-1].startswith("conditional locality 1.00 [1.00, 1.00], chance 0.")


def test_without_conditions_only_pixels_are_measured():
    report = audit(lambda x, sigma, cond: 2 * x, torch.randn(2, 3, 16, 16), sigmas=SIGMAS)
    assert {row.name for row in report.rows} == {"square", "energy"}
    assert "conditional" not in report.table()


def test_conditions_without_a_place_are_refused():
    with pytest.raises(InputError, match="'red' is not a place"):
        audit(lambda x, sigma, cond: x, torch.zeros(1, 3, 16, 16), [("red", "blue")], ColorCounts(), SIGMAS)


def test_a_trajectory_is_the_same_whatever_level_is_looked_at_first():
    def exact(x, sigma, cond):  # of data N(3, 0.1^2) in every pixel
        s = sigma[:, None, None, None] ** 2
        return (0.01 * x + 3 * s) / (0.01 + s)

    images = torch.zeros(4, 3, 16, 16)
    for sigmas in ([80.0, 10.0, 0.5], [0.5]):
        state = states_at(exact, images, torch.tensor(sigmas), None, "trajectory", seed=0)[-1]
        assert state.mean() == pytest.approx(3, abs=0.1) and state.std() == pytest.approx(0.26**0.5, abs=0.05)


def test_what_looks_at_nothing_has_no_square():
    report = audit(lambda x, sigma, cond: 0 * x, torch.randn(2, 3, 16, 16), sigmas=[1.0])
    assert [row.name for row in report.rows if np.isnan(row.estimate.value)] == ["square"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"denoiser": torch.no_grad()(local)}, "gives no gradient"),
        ({"sigmas": [1.0, -1.0]}, "sigmas are above 0"),
        ({"condition_sets": SETS[:1]}, "1 condition sets for 2 images"),
        ({"condition_sets": [((16.0, 16.0),)] * 2, "conditioner": Lenient(8)}, r"\(16.0, 16.0\) is not in \[0, 1\]"),
        ({"denoiser": lambda x, sigma, cond: x * torch.nan}, "not finite at sigma 5"),
        ({"states": "trajectory", "sigmas": [0.5, 5.0]}, "falling noise levels"),
        ({"images": torch.zeros(0, 3, 16, 16), "condition_sets": []}, "0 images"),
    ],
)
def test_what_cannot_be_measured_is_said(changes, sentence):
    asked = {"denoiser": local, "images": torch.randn(2, 3, 16, 16), "condition_sets": SETS, "conditioner": GRID}
    with pytest.raises(InputError, match=sentence):
        audit(**asked | {"sigmas": SIGMAS} | changes)
