"""Influence on denoisers whose conditions are known to act nowhere or in blocks; states on a known
path."""

import torch

from composcope.diffusion.sample import noise
from composcope.locality.influence import (
    effects,
    influence,
    noised,
    trajectory,
    without_each_denoised,
)

PLACES = [(0.125, 0.125), (0.875, 0.125), (0.625, 0.875)]


class Blocks:
    """A grid of 4 x 4 cells as cond: a cell asked for is painted, channel c with c times the noise
    level."""

    features = 16

    def __call__(self, condition_sets, seed=0):
        return torch.stack(
            [self.left_out(asked, seed + i)[0] for i, asked in enumerate(condition_sets)]
        )

    def left_out(self, condition_set, seed=0):
        parts = torch.zeros(len(condition_set), 16)
        for k, (u, v) in enumerate(condition_set):
            parts[k, int(v * 4) * 4 + int(u * 4)] = 1
        return torch.cat([parts.sum(0)[None], parts.sum(0) - parts])


def paint(x, sigma, cond):
    cells = cond.view(-1, 1, 4, 4).repeat_interleave(2, 2).repeat_interleave(2, 3)
    return x + torch.arange(1.0, 5)[:, None, None] * cells * sigma[:, None, None, None]


def test_influence_of_independent_blocks_is_their_own_block_and_zero_outside():
    maps = influence(paint, torch.randn(3, 4, 8, 8), 2.0, Blocks(), PLACES)
    assert maps.shape == (3, 8, 8)
    for k, (u, v) in enumerate(PLACES):
        expected = torch.zeros(8, 8)
        row, column = 2 * int(v * 4), 2 * int(u * 4)
        expected[row : row + 2, column : column + 2] = 2 * 30**0.5
        assert torch.allclose(maps[k], expected, atol=1e-5)
        assert (maps[k][expected == 0] == 0).all()


def test_a_denoiser_that_ignores_its_conditions_has_influence_zero():
    assert (
        influence(lambda x, sigma, cond: x.tanh(), torch.randn(2, 3, 8, 8), 1.0, Blocks(), PLACES)
        == 0
    ).all()


def test_each_image_has_its_own_set_and_seed_and_all_go_in_one_batch():
    class Slots(Blocks):
        """The feature that a condition uses depends on the seed, as in a list of slots."""

        def left_out(self, condition_set, seed=0):
            return super().left_out(condition_set).roll(seed, 1)

    calls = []

    def watched(x, sigma, cond):
        calls.append(cond)
        return paint(x, sigma, cond)

    asked = Slots(), [PLACES, PLACES[:1]]
    every = without_each_denoised(watched, torch.zeros(2, 4, 8, 8), 1.0, *asked, seed=5)
    found = [effects(x0) for x0 in every]
    assert len(calls) == 1
    assert [len(maps) for maps in found] == [3, 1]
    assert torch.equal(calls[0][0], Slots()([PLACES, PLACES[:1]], seed=5)[0])
    assert torch.equal(calls[0][4], Slots()([PLACES, PLACES[:1]], seed=5)[1])
    assert (calls[0][5] == 0).all()


def test_noised_images_have_noise_of_their_own_seed():
    images = torch.randn(3, 3, 8, 8)
    x = noised(images, 2.0, [7, 8, 9])
    assert torch.allclose(x[1:2], images[1:2] + 2 * noise([8], (3, 8, 8)))
    assert torch.equal(noised(images[2:], 2.0, [9]), x[2:])


def test_a_trajectory_follows_the_known_path_of_a_gaussian():
    """With x0 ~ N(0, s^2): D = x s^2 / (s^2 + sigma^2), and x(sigma) is proportional to sqrt(s^2 +
    sigma^2)."""
    s, start = 0.5, noise([0, 1], (3, 4, 4)).double()
    sigmas = torch.tensor([20.0, 3.0, 0.5, 0.02], dtype=torch.float64)

    def gaussian(x, sigma, cond):
        return x * s**2 / (s**2 + sigma[:, None, None, None] ** 2)

    states = trajectory(gaussian, start, sigmas, None, substeps=32)
    for state, sigma in zip(states, sigmas, strict=True):
        expected = start * sigmas[0] * ((s**2 + sigma**2) / (s**2 + sigmas[0] ** 2)).sqrt()
        assert torch.allclose(state, expected, rtol=2e-3)
