"""Solvers against the Gaussian's closed form and against diffusers' schedulers; images depend on
their seed alone."""

import pytest
import torch
from diffusers import EDMEulerScheduler, HeunDiscreteScheduler
from torch import nn

from composcope.diffusion.denoiser import Precond
from composcope.diffusion.sample import Churn, noise, noise_levels, sample, walk
from composcope.errors import InputError

SD = 0.6


def gaussian(x, sigma, cond):
    """The exact denoiser of N(cond, SD^2); the mean is cond's first feature."""
    mean = 0 if cond is None else cond[:, 0, None, None, None]
    return mean + (x - mean) * (SD**2 / (SD**2 + sigma**2))[:, None, None, None]


def flow(x, sigmas):
    """Where the exact ODE takes unit noise: every deviation shrinks with the standard deviation of
    the noisy data."""
    return x * sigmas[0] * SD / (SD**2 + sigmas[0] ** 2).sqrt()


def solved(denoiser, x, sigmas, solver, cond=None, sources=(), churn=None):
    """Where a solver ends."""
    return [*walk(denoiser, x, cond, sigmas, solver, sources, churn)][-1].x


class Net(nn.Module):
    def forward(self, x, noise_label, cond):
        return torch.tanh(x.roll(1, 3) - x.flip(2)) * noise_label.cos()[:, None, None, None]


WARPED = Precond(Net(), nn.Identity(), SD)


@pytest.mark.parametrize(("solver", "order"), [("euler", 1), ("heun", 2)])
def test_solvers_converge_to_the_exact_flow_at_their_order(solver, order):
    x, errors = noise(range(4), (3, 8, 8)).double(), []
    for steps in (64, 128, 256):
        sigmas = noise_levels(steps).double()
        errors.append((solved(gaussian, x, sigmas, solver) - flow(x, sigmas)).abs().max().item())
    assert errors[1] / errors[2] == pytest.approx(2**order, rel=0.25)
    assert errors[2] < (5e-2 if order == 1 else 1e-3)


@pytest.mark.parametrize("steps", [5, 32])
def test_noise_levels_are_those_of_diffusers(steps):
    scheduler = EDMEulerScheduler(sigma_min=0.01, sigma_max=50, rho=5)
    scheduler.set_timesteps(steps)
    torch.testing.assert_close(noise_levels(steps, 0.01, 50, 5), scheduler.sigmas)


def test_euler_steps_are_those_of_diffusers():
    scheduler = EDMEulerScheduler(sigma_data=SD)
    scheduler.set_timesteps(12)
    x = noise(range(3), (3, 8, 8))
    theirs = x * scheduler.sigmas[0]
    for sigma, t in zip(scheduler.sigmas[:-1], scheduler.timesteps, strict=True):
        c_noise = (sigma.log() / 4).expand(3)
        theirs = scheduler.step(
            Net()(scheduler.scale_model_input(theirs, t), c_noise, None), t, theirs
        ).prev_sample
    torch.testing.assert_close(
        solved(WARPED, x, noise_levels(12), "euler"), theirs, atol=1e-5, rtol=1e-5
    )


def test_heun_steps_are_those_of_diffusers():
    """Their scheduler is asked for the slope of one stage after another; only its noise levels are
    replaced by ours."""
    sigmas, scheduler, x = noise_levels(10), HeunDiscreteScheduler(), noise(range(3), (3, 8, 8))
    scheduler.set_timesteps(10)
    inner = sigmas[1:-1].repeat_interleave(2)
    scheduler.sigmas = torch.cat([sigmas[:1], inner, sigmas[-1:]])
    theirs = x * sigmas[0]
    for sigma, t in zip(scheduler.sigmas[:-1], scheduler.timesteps, strict=True):
        slope = (theirs - WARPED(theirs, sigma.expand(3), None)) / sigma
        theirs = scheduler.step(slope, t, theirs).prev_sample
    torch.testing.assert_close(solved(WARPED, x, sigmas, "heun"), theirs, atol=1e-5, rtol=1e-5)


def test_the_stochastic_solver_without_churn_is_heun():
    x, sigmas = noise(range(2), (3, 8, 8)), noise_levels(8)
    sources = [torch.Generator().manual_seed(seed) for seed in range(2)]
    still = solved(WARPED, x, sigmas, "stochastic", None, sources, Churn(S_churn=0))
    torch.testing.assert_close(still, solved(WARPED, x, sigmas, "heun"))


def test_the_stochastic_solver_keeps_the_distribution_and_forgets_the_start():
    """Of N(1, SD^2): the same mean and deviation as the exact flow, but other images from the same
    first noise."""
    seeds, shape, cond = range(4), (3, 64, 64), torch.ones(4, 1)
    churn = Churn(S_churn=30, S_min=0.01, S_max=100, S_noise=1.0)
    x = sample(gaussian, seeds, shape, cond, noise_levels(64), "stochastic", churn)
    assert x.mean().item() == pytest.approx(1, abs=5 * SD / x.numel() ** 0.5)
    # 0.002 is a deviation; the rest is the steps' bias
    assert x.std().item() == pytest.approx(SD, abs=0.012)
    still = sample(gaussian, seeds, shape, cond, noise_levels(64))
    correlation = torch.corrcoef(torch.stack([x.flatten(), still.flatten()]))[0, 1]
    assert abs(correlation) < 0.7


@pytest.mark.parametrize("solver", ["heun", "stochastic"])
def test_an_image_depends_on_its_seed_and_cond_alone(solver):
    seeds, cond = [7, 3, 11, 5, 2], torch.arange(5.0)[:, None]
    one = sample(gaussian, seeds, (3, 4, 4), cond, noise_levels(6), solver=solver, batch=5)
    parts = sample(gaussian, seeds, (3, 4, 4), cond, noise_levels(6), solver=solver, batch=2)
    torch.testing.assert_close(one, parts, atol=1e-6, rtol=1e-6)
    back = sample(gaussian, seeds[::-1], (3, 4, 4), cond.flip(0), noise_levels(6), solver=solver)
    torch.testing.assert_close(one, back.flip(0), atol=1e-6, rtol=1e-6)
    assert (
        one[0] - sample(gaussian, [8], (3, 4, 4), cond[:1], noise_levels(6), solver=solver)[0]
    ).abs().max() > 0.1


@pytest.mark.parametrize("solver", ["euler", "heun"])
def test_the_walk_shows_every_level_with_what_the_denoiser_makes_of_it(solver):
    x, sigmas = noise(range(2), (3, 8, 8)), noise_levels(5)
    steps = [*walk(WARPED, x, None, sigmas, solver)]
    assert [step.index for step in steps] == [0, 1, 2, 3, 4, 5]
    assert torch.equal(torch.stack([step.sigma for step in steps]), sigmas)
    assert torch.equal(steps[0].x, x * sigmas[0])
    for step in steps[:-1]:
        torch.testing.assert_close(step.x0, WARPED(step.x, step.sigma.expand(2), None))
    assert torch.equal(steps[-1].x, steps[-1].x0)


def test_a_walk_that_ends_above_zero_still_denoises_its_last_level():
    x, sigmas = noise(range(2), (3, 8, 8)), torch.tensor([10.0, 1.0])
    *_, last = walk(gaussian, x, None, sigmas)
    torch.testing.assert_close(last.x0, gaussian(last.x, torch.ones(2), None))


def in_place(x, sigma, cond):
    return x.mul_(0.5)


@pytest.mark.parametrize(
    ("denoiser", "words"),
    [
        (lambda x, sigma, cond: x[:, :1], r"returns \[2, 1, 4, 4\] for x of \[2, 3, 4, 4\]"),
        (lambda x, sigma, cond: None, "returns NoneType"),
        (lambda x, sigma, cond: x * float("nan"), "not finite at sigma 80"),
        (in_place, "changes x in place"),
    ],
)
def test_a_denoiser_that_breaks_the_contract_is_named(denoiser, words):
    with pytest.raises(InputError, match=words):
        sample(denoiser, [0, 1], (3, 4, 4))


def test_every_seed_needs_its_own_row_and_the_solver_must_exist():
    with pytest.raises(InputError, match="1 rows of cond for 4 seeds"):
        sample(gaussian, range(4), (3, 4, 4), torch.ones(1, 1))
    with pytest.raises(
        InputError, match="no solver 'ddim'; the solvers are heun, euler, stochastic"
    ):
        sample(gaussian, [0], (3, 4, 4), solver="ddim")


def test_a_caller_in_inference_mode_gets_the_same_images():
    plain = sample(gaussian, [0, 1], (3, 8, 8), sigmas=noise_levels(4))
    with torch.inference_mode():
        inside = sample(gaussian, [0, 1], (3, 8, 8), sigmas=noise_levels(4))
    assert torch.equal(plain, inside)
