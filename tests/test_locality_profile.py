"""The metrics on maps whose values are known: exactly local, even, enlarged; apart, overlapping."""

import numpy as np
import pytest

from composcope.locality.profile import (
    centred_square,
    energy_share,
    near,
    near_chance,
    overlaps,
    own_share,
)

PLACES = np.array([[0.30, 0.40], [0.71, 0.62]])


def locality(maps, radius=0.1875, places=PLACES):
    """Of one sample's maps [condition, height, width]."""
    energy = maps[None] ** 2
    return energy_share(energy, energy * near(places[None], maps.shape[1:], radius)).value


def test_the_square_grows_ring_by_ring():
    gradient = np.zeros((1, 9, 9))
    # Energies 9, 4, 1 at rings 0, 2, 4.
    gradient[0, 4, 4], gradient[0, 4, 6], gradient[0, 0, 0] = (3.0, 2.0, 1.0)
    assert [
        int(centred_square(gradient, (4, 4), f)[0]) for f in (0.5, 0.64, 0.65, 0.92, 0.93, 1.0)
    ] == [1, 1, 5, 5, 9, 9]
    assert centred_square(gradient, (0, 0), 1.0)[0] == 13  # to column 6, six rings away


def test_nearness_is_an_area():
    mask = near(PLACES, (16, 16))
    assert mask.shape == (2, 16, 16)
    assert np.allclose(mask.mean((1, 2)), (3 / 8) ** 2)
    assert np.isclose(near_chance(PLACES), (3 / 8) ** 2)
    assert np.allclose(
        near(np.array([0.0, 0.0]), (4, 4), radius=0.125), [[0.25, 0, 0, 0]] + [[0] * 4] * 3
    )


def test_an_exactly_local_map_has_locality_one_and_an_even_one_chance():
    local = np.stack([(near(p, (32, 32)) == 1).astype(float) for p in PLACES])
    assert locality(local) == 1.0
    assert np.isclose(locality(np.ones((2, 32, 32))), near_chance(PLACES))
    assert locality(local[::-1] * (near(PLACES, (32, 32)) == 0)) == 0.0


def test_locality_does_not_move_with_image_scale():
    maps = np.random.default_rng(0).random((2, 12, 12))
    value = locality(maps)
    for scale in (2, 3, 5):
        larger = maps.repeat(scale, 1).repeat(scale, 2)
        assert np.isclose(locality(larger), value, rtol=1e-12)
    assert not np.isclose(locality(maps, radius=0.125), value)


def test_a_sample_of_which_nothing_is_asked_is_no_sample():
    energies = np.random.default_rng(0).random((3, 2, 8, 8))
    energies[1] = np.nan
    assert energy_share(energies, energies / 4) == energy_share(energies[::2], energies[::2] / 4)


def test_nothing_that_acts_has_no_share():
    assert np.isnan(locality(np.zeros((2, 8, 8))))


def test_the_own_share_at_a_conditioned_pixel():
    maps = np.zeros((1, 2, 10, 10))
    maps[0, 0, 4, 3], maps[0, 1, 4, 3] = 3.0, 1.0  # the place of the first condition
    maps[0, 0, 6, 7], maps[0, 1, 6, 7] = 2.0, 2.0  # and of the second
    assert np.allclose(own_share(maps, PLACES[None]), [[0.9, 0.5]])
    with_one_missing = np.concatenate(
        [maps, np.stack([maps[0, 0], np.full((10, 10), np.nan)])[None]]
    )
    places = np.stack([PLACES, [PLACES[0], [np.nan, np.nan]]])
    assert np.allclose(
        own_share(with_one_missing, places), [[0.9, 0.5], [1.0, np.nan]], equal_nan=True
    )


def test_overlap_is_zero_apart_one_alike_and_known_between():
    maps = np.zeros((1, 2, 1, 4, 4))
    maps[0, 0, 0, :, 0] = 1.0
    maps[0, 1, 0, :, 1] = 3.0
    assert [value[0] for value in overlaps(maps)] == pytest.approx([0.0, 0.25])
    maps[0, 1] = 2 * maps[0, 0]
    assert [value[0] for value in overlaps(maps)] == pytest.approx([1.0, 0.25])
    maps[0, 1] = np.sqrt([[1.0, 1.0, 0, 0]] * 4)  # half of it shared: cosine 1 / sqrt 2
    assert [value[0] for value in overlaps(maps)] == pytest.approx([0.5**0.5, 4 * 8 / 16 / 32**0.5])


def test_chance_of_overlap_is_the_mean_over_all_shifts_within_each_level():
    rng = np.random.default_rng(0)
    maps = rng.random((1, 2, 3, 4, 5))
    shifts = [
        overlaps(np.stack([maps[0, 0], np.roll(maps[0, 1], (i, j), (1, 2))])[None])[0][0]
        for i in range(4)
        for j in range(5)
    ]
    assert overlaps(maps)[1][0] == pytest.approx(np.mean(shifts))
    assert overlaps(np.ones((1, 3, 1, 4, 5)))[1][0] == pytest.approx(1.0)


def test_conditions_that_do_not_act_or_are_missing_have_no_overlap():
    maps = np.random.default_rng(1).random((3, 3, 1, 4, 4))
    maps[0, 2] = 0.0
    maps[1, 2] = np.nan
    alone = overlaps(maps[:, :2])[0]
    assert overlaps(maps)[0][:2] == pytest.approx(alone[:2])
    maps[2, 1:] = 0.0
    assert np.isnan(overlaps(maps)[0][2])
