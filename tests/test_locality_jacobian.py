"""Pixel gradients against the posterior covariance of a Gaussian, a convolution of known reach, and
plain autograd."""

import weakref

import pytest
import torch
import torch.nn.functional as F

from composcope.errors import InputError
from composcope.locality.jacobian import (
    chunks,
    pixel_cotangents,
    pixel_gradient,
    pixel_gradients,
    saved_bytes,
)
from composcope.locality.profile import centred_square
from composcope.nets.unet import UNet
from composcope.tensors import distinct

SHAPE = (2, 3, 4)  # channel, height, width


class GaussianMixture:
    """E[x0 | x] for x0 ~ sum_k w_k N(mean_k, cov_k), flattened; one component is a Gaussian."""

    def __init__(self, components: int):
        d, rng = 24, torch.Generator().manual_seed(3)
        self.means = torch.randn(components, d, generator=rng, dtype=torch.float64)
        roots = torch.randn(components, d, d, generator=rng, dtype=torch.float64) / d**0.5
        self.covs, self.d = roots @ roots.mT, d

    def posterior(self, x, sigma):
        """Weights [n, k], means [n, k, d] and covariances [k, d, d] of x0 given the flat x."""
        total = self.covs + sigma**2 * torch.eye(self.d, dtype=torch.float64)
        away = x[:, None] - self.means
        solved = torch.linalg.solve(total, away[..., None])[..., 0]
        log = -0.5 * (away * solved).sum(-1) - 0.5 * torch.logdet(total)
        means = self.means + (self.covs @ solved[..., None])[..., 0]
        return log.softmax(1), means, self.covs - self.covs @ torch.linalg.solve(total, self.covs)

    def __call__(self, x, sigma, cond):
        weights, means, _ = self.posterior(x.flatten(1), sigma[0])
        return (weights[..., None] * means).sum(1).view_as(x)

    def covariance(self, x, sigma):
        weights, means, covs = self.posterior(x.flatten(1), sigma)
        away = means - (weights[..., None] * means).sum(1, keepdim=True)
        return torch.einsum("nk,kij->nij", weights, covs) + torch.einsum(
            "nk,nki,nkj->nij", weights, away, away
        )


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("sigma", [0.1, 2.0])
def test_gradients_of_an_exact_denoiser_are_its_posterior_covariance_over_sigma_squared(
    components, sigma
):
    exact, x = GaussianMixture(components), torch.randn(2, *SHAPE, dtype=torch.float64)
    expected = exact.covariance(x, sigma) / sigma**2
    blocks = expected.view(2, *SHAPE, *SHAPE)
    gradient = pixel_gradient(exact, x, sigma, None, pixels=[(1, 2), (0, 0)])
    for index, (row, column) in enumerate([(1, 2), (0, 0)]):
        seen = sum(blocks[:, c, row, column, c].abs() for c in range(2)).mean(0)
        assert torch.allclose(gradient[index], seen, atol=1e-6)


def test_a_convolution_of_known_reach_has_exactly_that_square():
    for kernel in (1, 3, 7):
        weight = torch.ones(3, 3, kernel, kernel)

        def denoiser(x, sigma, cond, w=weight):
            return F.conv2d(x, w, padding=w.shape[-1] // 2)

        x = torch.randn(2, 3, 16, 16)
        for pixel in [(8, 8), (0, 15)]:
            gradient = pixel_gradient(denoiser, x, 1.0, None, [pixel]).numpy()
            assert centred_square(gradient, pixel, fraction=1.0) == kernel
        # Of the 7 x 7 equal squares, 5 x 5 hold 51 %.
        assert centred_square(gradient, (0, 15), fraction=0.3) <= kernel


def unet() -> UNet:
    torch.manual_seed(0)
    small = {"model_channels": 8, "channel_mult": (1, 2), "num_blocks": 1}
    net = UNet(16, features=4, **small, attn_resolutions=(8,), fold=1)
    for name, parameter in net.named_parameters():
        if name.endswith("gain"):
            parameter.data.fill_(0.7)
    return net


def test_batched_gradients_equal_a_loop_of_autograd_calls_under_any_memory_limit():
    net, pixels = unet(), [(3, 4), (15, 0), (8, 8)]
    x, sigma, cond = torch.randn(3, 3, 16, 16), torch.rand(3) + 0.5, torch.eye(3, 4)
    leaf = x.clone().requires_grad_()
    x0, expected = net(leaf, sigma, cond), torch.zeros(3, 3, 16, 16)
    for p, (row, column) in enumerate(pixels):
        for c in range(3):
            grad = torch.autograd.grad(x0[:, c, row, column].sum(), leaf, retain_graph=True)[0]
            expected[:, p] += grad[:, c].abs()
    assert expected.max() > 0.1
    for memory in (1, 2**21, 2**28):
        found = pixel_gradients(net, x, sigma, cond, pixels, memory)
        assert torch.allclose(found, expected, atol=1e-5)
        assert not found.requires_grad
    assert torch.allclose(pixel_gradient(net, x, sigma, cond, pixels), expected.mean(0), atol=1e-5)


def test_the_memory_limit_is_kept():
    x, sigma, cond = torch.randn(1, 3, 16, 16), torch.ones(1), torch.zeros(1, 4)
    seen = []

    class Exp(torch.nn.Module):
        def forward(self, x, sigma, cond):
            seen.append(len(x))
            return x.exp()  # autograd keeps the result: 3072 bytes a sample

    assert chunks(Exp(), x, sigma, cond, rows=9, memory=3072 * 10) == (1, 9)
    assert chunks(Exp(), x, sigma, cond, rows=9, memory=3072 * 35) == (3, 9)
    assert chunks(Exp(), x, sigma, cond, rows=9, memory=3072 * 4) == (1, 3)
    assert chunks(Exp(), x, sigma, cond, rows=9, memory=1) == (1, 1)
    seen.clear()
    pixel_gradients(Exp(), x.repeat(5, 1, 1, 1), sigma.repeat(5), None, [(0, 0)], memory=3072 * 8)
    assert seen == [2, 1, 2, 2, 1]  # two to measure with, then five samples two by two

    class Shared(Exp):
        def forward(self, x, sigma, cond):
            first, which = distinct(x)
            return super().forward(x[first], sigma, cond)[which]

    # Images of a batch differ, so what is measured with does.
    assert saved_bytes(Shared(), x, sigma, cond) >= 3072


def test_a_pixel_outside_the_image_is_named():
    with pytest.raises(InputError, match="y=16, x=0"):
        pixel_cotangents([(16, 0)], torch.zeros(1, 3, 16, 16))


def test_nothing_of_a_measurement_stays_in_memory():
    """exp saves its own output for the backward pass; a hook that returns it keeps it for ever."""
    seen = []

    def denoiser(x, sigma, cond):
        x0 = x.exp()
        seen.append(weakref.ref(x0))
        return 2 * x0

    pixel_gradient(denoiser, torch.zeros(1, 3, 4, 4), 1.0, None, [(1, 1)])
    assert len(seen) == 3 and all(one() is None for one in seen)
