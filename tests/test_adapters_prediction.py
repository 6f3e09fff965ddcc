"""Predictions of every kind become the same denoiser; the truth is the Gaussian's, in closed form.

For data N(0, S^2) and x = x0 + sigma n the best denoiser is x0 = x S^2 / (S^2 + sigma^2), and the
best prediction of anything else follows from it."""

import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import vjp, vmap

from composcope.adapters import Classes, Phrases, from_eps, from_flow, from_v, from_x0
from composcope.adapters.convention import Steps
from composcope.diffusion.denoiser import Conditioner, Drawer
from composcope.diffusion.sample import noise_levels, sample
from composcope.errors import InputError
from composcope.locality import audit, influence, pixel_gradient

S = 0.7
ALPHAS = (1 - torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64)).cumprod(0)
TABLE = ((1 - ALPHAS) / ALPHAS).sqrt()


def sigma_of(t):
    """sigma at a time: of a step, or between two of them linearly in its logarithm."""
    return torch.from_numpy(
        np.exp(np.interp(t.double().numpy(), np.arange(1000), TABLE.log().numpy()))
    )


def best(x, sigma):
    return x * S**2 / (S**2 + sigma**2)


def eps(x_t, t):
    sigma = sigma_of(t)[:, None, None, None]
    x = x_t * (1 + sigma**2).sqrt()
    return (x - best(x, sigma)) / sigma


def v(x_t, t):
    sigma = sigma_of(t)[:, None, None, None]
    alpha = 1 / (1 + sigma**2)
    x0 = best(x_t / alpha.sqrt(), sigma)
    return alpha.sqrt() * eps(x_t, t) - (1 - alpha).sqrt() * x0


def x0(x_t, t):
    sigma = sigma_of(t)[:, None, None, None]
    return best(x_t * (1 + sigma**2).sqrt(), sigma)


def flow(x_t, t):
    t = t[:, None, None, None]
    sigma = t / (1 - t)
    x = x_t / (1 - t)
    return (x - best(x, sigma)) / sigma - best(x, sigma)


@pytest.mark.parametrize(
    "denoiser",
    [
        from_eps(eps, ALPHAS, real_times=True),
        from_v(v, ALPHAS, real_times=True),
        from_x0(x0, ALPHAS, real_times=True),
        from_x0(lambda x, sigma: best(x, sigma[:, None, None, None])),
        from_flow(flow),
        from_flow(lambda x_t, t: flow(x_t, t / 1000), last=1000),
    ],
    ids=["eps", "v", "x0", "x0 of x", "flow", "flow to 1000"],
)
def test_the_gaussian_at_every_noise_level(denoiser):
    """On steps, between them, and at both ends."""
    sigma = torch.tensor([TABLE[0], TABLE[1], 0.0371, 0.5, TABLE[500], 3.3, 60.0, TABLE[-1]])
    x = torch.randn(8, 3, 4, 4, dtype=torch.float64)
    x0 = denoiser(x, sigma.double(), None)
    torch.testing.assert_close(x0, best(x, sigma[:, None, None, None]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "denoiser",
    [from_eps(eps, ALPHAS), from_v(v, ALPHAS), from_x0(x0, ALPHAS), from_flow(flow)],
    ids=["eps", "v", "x0", "flow"],
)
def test_a_pickled_one_denoises_the_same(denoiser):
    x, sigma = torch.randn(2, 1, 3, 3, dtype=torch.float64), torch.full((2,), 0.5).double()
    again = pickle.loads(pickle.dumps(denoiser))
    assert torch.equal(again(x, sigma), denoiser(x, sigma))


def test_without_real_times_a_model_gets_the_nearest_step():
    seen = []

    def model(x_t, t):
        seen.append(t)
        return torch.zeros_like(x_t)

    between = (TABLE[3] * TABLE[4]).sqrt()
    sigma = torch.stack([0 * between, TABLE[3], between * 0.999, between * 1.001, TABLE[-1] * 9])
    from_eps(model, ALPHAS)(torch.zeros(5, 1, 2, 2, dtype=torch.float64), sigma, None)
    assert seen[0].dtype == torch.int64 and seen[0].tolist() == [0, 3, 3, 4, 999]


@pytest.mark.parametrize(
    "denoiser",
    [from_eps(eps, ALPHAS[:700]), from_v(v, ALPHAS[:700]), from_x0(x0, ALPHAS[:700])],
    ids=["eps", "v", "x0"],
)
def test_beyond_the_last_step_x_is_brought_down_to_it(denoiser):
    """The same unit-variance input, and so the same x0, however large sigma is."""
    x = torch.randn(1, 3, 4, 4, dtype=torch.float64)
    last = TABLE[699]
    want = best(x, last)
    for sigma in (last, 2 * last, 1e6 * last):
        larger = x * ((1 + sigma**2) / (1 + last**2)).sqrt()
        torch.testing.assert_close(denoiser(larger, sigma[None], None), want)


def test_real_times_go_up_with_sigma_and_stay_at_the_ends():
    steps = Steps(ALPHAS, real_times=True)
    torch.testing.assert_close(steps(TABLE), torch.arange(1000.0, dtype=torch.float64))
    assert steps(torch.tensor([0.0, 1e-6, 1e6])).tolist() == [0, 0, 999]
    assert bool((steps(torch.logspace(-1.9, 2, 500)).diff() > 0).all())
    levels = torch.tensor([80.0, 12.0, 1.0, 0.125])
    torch.testing.assert_close(steps(levels.bfloat16()), steps(levels))


class Net(nn.Module):
    """A table of time embeddings, a table of classes, two convolutions."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.times = nn.Embedding(1000, 8)
        self.labels = nn.Embedding(4, 8)
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.last = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x_t, t, cond=None):
        label = torch.full((len(x_t),), 3) if cond is None else cond.argmax(1)
        shift = self.times(t) + self.labels(label)
        return self.last(torch.tanh(self.first(x_t) + shift[:, :, None, None]))


@pytest.fixture(scope="module")
def own():
    return from_eps(Net(), ALPHAS, conditioner=Classes(3, null=3), shape=(3, 6, 6))


def test_an_own_ddpm_is_differentiable_also_under_vmap(own):
    x = torch.randn(2, 3, 6, 6)
    sigma = torch.tensor([0.4, 5.0])
    cond = own.conditioner([(1,), (2,)])
    _, pullback = vjp(lambda z: own(z, sigma, cond), x)
    cotangents = torch.randn(5, 2, 3, 6, 6)
    rows = vmap(pullback)(cotangents)[0]
    for row, cotangent in zip(rows, cotangents, strict=True):
        z = x.clone().requires_grad_()
        (want,) = torch.autograd.grad(own(z, sigma, cond), z, cotangent)
        torch.testing.assert_close(row, want)
    assert pixel_gradient(own, x, 0.4, cond, [(3, 3)]).shape == (1, 6, 6)


def test_an_own_ddpm_is_a_drawer(own):
    assert isinstance(own, Drawer)
    cond = own.conditioner([(1,)] * 2)
    x = sample(own, [0, 1], own.shape, cond, noise_levels(4))
    assert own.decode(x).shape == (2, 6, 6, 3)
    gray = torch.tensor([-1.0, 0.0, 1.0, 2.0])[None, None, None]
    assert own.decode(gray)[0, 0].tolist() == [[0] * 3, [128] * 3, [255] * 3, [255] * 3]


def test_a_class_has_influence_beside_no_class(own):
    x = torch.randn(1, 3, 6, 6)
    found = influence(own, x, 0.4, own.conditioner, (1,))
    level = torch.tensor([0.4])
    with torch.no_grad():
        want = own(x, level, own.conditioner([(1,)])) - own(x, level, None)
    torch.testing.assert_close(found, want.norm(dim=1))
    assert found.max() > 0


def test_classes_have_names_or_numbers():
    classes = Classes(3, null=3, names={"cat": 2})
    assert isinstance(classes, Conditioner)
    assert classes([("cat",), (0,), ()]).argmax(1).tolist() == [2, 0, 3]
    assert classes.left_out(("cat",)).argmax(1).tolist() == [2, 3]
    assert classes.left_out(()).argmax(1).tolist() == [3]
    for wrong in (3, -1, "dog", 1.0, True):
        with pytest.raises(InputError, match="there is no class"):
            classes([(wrong,)])
    with pytest.raises(InputError, match="takes one class"):
        classes([(0, 1)])
    with pytest.raises(InputError, match="cannot be left out"):
        Classes(3).left_out((1,))


def test_labels_of_an_array_or_a_tensor_are_classes():
    want = torch.eye(4)[[2, 1]]
    for labels in (np.array([2, 1]), torch.tensor([2, 1])):
        assert torch.equal(Classes(3, null=3)([(label,) for label in labels]), want)


def test_latents_without_a_decoder_are_audited_and_shown_by_their_first_channels():
    """From the darkest value, black, to the brightest, whatever else is in the batch."""
    x = torch.zeros(1, 4, 2, 2)
    x[0, 1, 0, 1] = 6
    x[0, 3] = 9
    denoiser = from_x0(lambda x, sigma: x, shape=(4, 2, 2))
    want = np.zeros((1, 2, 2, 3), np.uint8)
    want[0, 0, 1, 1] = 255
    assert np.array_equal(denoiser.decode(x), want)
    assert np.array_equal(denoiser.decode(torch.cat([x, 3 * x]))[:1], want)
    assert audit(denoiser, x, sigmas=[0.001]).levels[0].picture.shape == (2, 2, 3)


def test_phrases_are_joined_and_left_out():
    said = []

    def encode(prompts):
        said.append(list(prompts))
        return torch.zeros(len(prompts), 2)

    phrases = Phrases(encode)
    assert isinstance(phrases, Conditioner) and phrases.features == 2
    phrases.left_out(("a cube", "a ball"))
    assert said[-1] == ["a cube and a ball", "a ball", "a cube"]
    with pytest.raises(InputError, match="a condition set is a list of phrases"):
        phrases(["a cube"])


X = torch.zeros(2, 3, 4, 4)
SIGMA = torch.ones(2)


@pytest.mark.parametrize(
    ("alphas", "sentence"),
    [
        (1 - ALPHAS, "alphas_cumprod must fall"),
        ([0.5, 0.5], "alphas_cumprod must fall"),
        ([1.0, 0.5], r"alphas_cumprod\[0\] is 1, not between 0 and 1"),
        ([0.5, math.nan], r"alphas_cumprod\[1\] is nan"),
        ([0.5, -0.1], r"alphas_cumprod\[1\] is -0.1"),
        ([0.5], "one number a training step"),
        ([[0.5, 0.4]], "one number a training step"),
        ([3, 2], "one number a training step"),
        (["a"], "a list or a tensor of numbers"),
    ],
)
def test_wrong_alphas_cumprod_is_one_sentence(alphas, sentence):
    for adapter in (from_eps, from_v, from_x0):
        with pytest.raises(InputError, match=sentence):
            adapter(eps, alphas)


@pytest.mark.parametrize(
    ("model", "sigma", "sentence"),
    [
        (eps, 0.5, r"sigma is a float; .*torch.full\(\(len\(x\),\), 0.5\)"),
        (eps, torch.tensor(0.5), r"sigma has the shape \[\] for 2 images"),
        (eps, torch.ones(3), r"sigma has the shape \[3\] for 2 images"),
        (lambda x_t, t: (x_t,), SIGMA, "the model returns a tuple"),
        (lambda x_t, t: x_t[:, :2], SIGMA, r"returns \[2, 2, 4, 4\] for x of \[2, 3, 4, 4\]"),
        (lambda x_t, t: x_t.repeat(1, 2, 1, 1), SIGMA, "the second half is a variance"),
    ],
)
def test_wrong_use_is_one_sentence(model, sigma, sentence):
    with pytest.raises(InputError, match=sentence):
        from_eps(model, ALPHAS)(X, sigma, None)


def test_what_is_not_a_model_or_has_no_shape_is_one_sentence():
    for model in (X, torch.nn.Linear(2, 2)):
        with pytest.raises(InputError, match="a model is called as"):
            from_flow(model)
    with pytest.raises(
        InputError, match=r"shape is \(channels, height, width\), not \(3, -1, 16\)"
    ):
        from_flow(flow, shape=(3, -1, 16))
    with pytest.raises(InputError, match="last is the time of pure noise, a number above 0"):
        from_flow(flow, last=0.0)
    with pytest.raises(InputError, match=r"give it as shape=\(channels, height, width\)"):
        _ = from_flow(flow).shape


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: Classes(0), "count is a whole number from 1 on, not 0"),
        (lambda: Classes(3, null=-1), "null is a whole number from 0 on, not -1"),
        (lambda: Phrases(lambda some: X)([("a cat", 3)]), "a condition is a phrase, .* not 3"),
    ],
)
def test_wrong_conditioners_are_one_sentence(made, sentence):
    with pytest.raises(InputError, match=sentence):
        made()


def test_an_alpha_of_zero_at_the_end_is_a_large_sigma():
    assert Steps([0.9, 0.5, 0.0]).sigmas[-1] == pytest.approx(2**12, rel=1e-4)


def test_nothing_asked_of_a_model_that_must_have_cond_is_its_class_of_none():
    classes = Classes(3, null=3)

    def model(x_t, t, cond):
        return x_t * (1 + cond.argmax(1)[:, None, None, None])

    class Net(torch.nn.Module):
        def forward(self, x_t, t, cond):
            return model(x_t, t, cond)

    x = torch.randn(2, 3, 4, 4)
    for own in (model, Net()):
        denoiser = from_x0(own, conditioner=classes)
        torch.testing.assert_close(denoiser(x, torch.ones(2)), 4 * x)
        torch.testing.assert_close(denoiser(x, torch.ones(2), classes([(0,), (1,)]))[1], 2 * x[1])
    optional = from_x0(lambda x_t, t, cond=None: x_t if cond is None else -x_t, conditioner=classes)
    assert torch.equal(optional(x, torch.ones(2)), x)
    plain = from_x0(lambda x_t, t, cond: x_t if cond is None else -x_t)  # and no conditioner
    assert torch.equal(plain(x, torch.ones(2)), x)
