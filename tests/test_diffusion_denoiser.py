"""Preconditioning, loss and pixels against closed forms: the denoiser of a Gaussian, and diffusers'
preconditioning."""

import numpy as np
import pytest
import torch
from diffusers import EDMEulerScheduler
from torch import nn

from composcope.diffusion.denoiser import Precond
from composcope.diffusion.loss import Loss, Noise, generator
from composcope.diffusion.pixels import Pixels


class Constant(nn.Module):
    """A network, or an uncertainty, that answers the same everywhere."""

    def __init__(self, value: float):
        super().__init__()
        self.value = value

    def forward(self, x, noise_label=None, cond=None):
        return torch.full_like(x, self.value)


class Mix(nn.Module):
    """A network that depends on all of its inputs."""

    def forward(self, x, noise_label, cond):
        return (
            torch.sin(3 * x) + noise_label[:, None, None, None] + cond.sum(1)[:, None, None, None]
        )


def test_a_network_of_zeros_is_the_denoiser_of_a_gaussian():
    sd, x, sigma = 0.7, torch.randn(5, 3, 4, 4), torch.tensor([0.01, 0.3, 1.0, 5.0, 80.0])
    expected = x * (sd**2 / (sd**2 + sigma**2))[:, None, None, None]
    torch.testing.assert_close(Precond(Constant(0), Constant(0), sd)(x, sigma, None), expected)


class WithGate(nn.Module):
    """A network of zeros that gives the logits of a kernel: one row for each weight."""

    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, x, noise_label, cond):
        return torch.cat([torch.zeros_like(x), self.logits.expand(len(x), *self.logits.shape)], 1)


def test_a_gate_takes_away_all_of_x_where_it_is_shut_and_nothing_where_it_is_open():
    sd, x, sigma = 0.7, torch.randn(2, 3, 4, 4), torch.tensor([0.01, 1.0])
    logits = torch.full((1, 4, 4), -100.0)
    logits[..., 2:] = 100
    plain = Precond(Constant(0), Constant(0), sd)(x, sigma, None)
    gated = Precond(WithGate(logits), Constant(0), sd, gate=1)(x, sigma, None)
    assert torch.equal(gated[..., :2], torch.zeros(2, 3, 4, 2))
    torch.testing.assert_close(gated[..., 2:], plain[..., 2:])


def test_a_gate_of_nine_weights_is_a_kernel_over_the_neighbours():
    """All weights alike and large: the mean of 3 x 3 pixels, zero outside the image."""
    sd, x, sigma = 0.7, torch.randn(2, 3, 5, 5), torch.tensor([0.01, 1.0])
    gated = Precond(WithGate(torch.full((9, 5, 5), 100.0)), Constant(0), sd, gate=3)(x, sigma, None)
    c_skip = (sd**2 / (sd**2 + sigma**2))[:, None, None, None]
    expected = c_skip * torch.nn.functional.avg_pool2d(x, 3, 1, 1)
    torch.testing.assert_close(gated, expected)


def test_preconditioning_is_that_of_diffusers():
    scheduler = EDMEulerScheduler(sigma_data=0.4)
    x, cond, denoiser = torch.randn(1, 3, 4, 4), torch.randn(1, 6), Precond(Mix(), Constant(0), 0.4)
    for sigma in torch.tensor([0.003, 0.2, 1.0, 30.0]):
        F = Mix()(
            scheduler.precondition_inputs(x, sigma), scheduler.precondition_noise(sigma)[None], cond
        )
        torch.testing.assert_close(
            denoiser(x, sigma[None], cond), scheduler.precondition_outputs(x, F, sigma)
        )


def test_the_weighted_error_of_a_gaussian_is_one_at_every_noise_level():
    """lambda E|D - x0|^2 = lambda sd^2 sigma^2 / (sd^2 + sigma^2) = 1: no noise level outweighs
    another."""
    sd, sigma = 0.3, torch.tensor([0.02, 0.3, 2.0, 40.0])
    x0, noise = sd * torch.randn(4, 3, 300, 300), torch.randn(4, 3, 300, 300)
    objective, error = Loss(Precond(Constant(0), Constant(0), sd))(x0, sigma, noise, None)
    # 270,000 values: 0.003 is a deviation
    torch.testing.assert_close(error, torch.ones(4), atol=0.02, rtol=0)
    torch.testing.assert_close(objective, error)


def test_the_uncertainty_enters_as_in_equation_21():
    u, sigma, x0 = 1.3, torch.tensor([0.5]), torch.randn(1, 3, 8, 8)
    objective, error = Loss(Precond(Constant(0), Constant(u), 1.0))(
        x0, sigma, torch.randn_like(x0), None
    )
    torch.testing.assert_close(objective, error / np.exp(u) + u)
    assert error > 0


def test_noise_belongs_to_the_image_and_not_to_the_batch():
    levels, like = Noise(-0.3, 1.3), torch.empty(8, 3, 4, 4)
    sigma, noise = levels.draw(like, [generator(1, position) for position in range(8)])
    again, part = levels.draw(like[:3], [generator(1, position) for position in (5, 6, 7)])
    assert torch.equal(sigma[5:], again) and torch.equal(noise[5:], part)
    assert not torch.equal(
        sigma, levels.draw(like, [generator(2, position) for position in range(8)])[0]
    )


def test_noise_levels_follow_their_distribution():
    levels, n = Noise(-0.3, 1.3), 4000
    sigma, noise = levels.draw(
        torch.empty(n, 1, 1, 2), [generator(0, position) for position in range(n)]
    )
    assert sigma.log().mean().item() == pytest.approx(-0.3, abs=5 * 1.3 / n**0.5)
    assert sigma.log().std().item() == pytest.approx(1.3, abs=5 * 1.3 / (2 * n) ** 0.5)
    both = torch.cat([sigma.log()[None], noise[:, 0, 0].T])
    assert (torch.corrcoef(both) - torch.eye(3)).abs().max() < 5 / n**0.5


@pytest.mark.parametrize("fixed", [True, False])
def test_pixels_go_there_and_back(fixed):
    images = torch.randint(0, 256, (64, 3, 6, 5)).float() / 127.5 - 1
    pixels = Pixels.measure(images, fixed)
    mean = pixels.encode(images).mean(0 if fixed else (0, 2, 3))
    torch.testing.assert_close(mean, torch.zeros_like(mean), atol=1e-5, rtol=0)
    assert (pixels.encode(images).abs() <= 3.0001).float().mean() > 0.9995
    expected = ((images + 1) * 127.5).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    np.testing.assert_array_equal(pixels.decode(pixels.encode(images)), expected)
