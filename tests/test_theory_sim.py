"""Structured Identity Mapping: closed forms against autograd, scipy and gradient descent."""

import pytest
import torch
from scipy.integrate import solve_ivp

from composcope.theory import sim as S

C = S.Concepts((1.0, 1.5), (0.05, 0.3), d=3)


def test_the_second_moment_is_that_of_the_samples_and_the_points_stand_for_the_population():
    x = C.samples(20_000, seed=0)
    torch.testing.assert_close(x.T @ x / len(x), C.a.diag(), atol=0.02, rtol=0)
    W = torch.randn(3, 3, generator=S.rng(1), dtype=torch.float64)
    expected = 0.5 * ((W - torch.eye(3)) * C.a.sqrt()).square().sum()
    points = C.population()
    torch.testing.assert_close(0.5 * (points @ W.T - points).square().sum(), expected)


def test_one_layer_is_the_flow():
    W0 = torch.randn(3, 3, generator=S.rng(2), dtype=torch.float64)
    slope = lambda t, w: -((w.reshape(3, 3) - torch.eye(3).numpy()) * C.a.numpy()).ravel()  # noqa: E731
    W = torch.from_numpy(
        solve_ivp(slope, (0, 2.5), W0.ravel(), rtol=1e-10, atol=1e-12).y[:, -1].reshape(3, 3)
    )
    torch.testing.assert_close(S.one_layer(W0, C.a, C.xhat, 2.5), W @ C.xhat, atol=1e-8, rtol=0)


def test_three_terms_are_the_matrix_form_and_half_the_gradient():
    U = torch.randn(4, 3, 5, generator=S.rng(3), dtype=torch.float64).requires_grad_()
    W = U @ U.mT
    (slope,) = torch.autograd.grad(0.5 * ((W - torch.eye(3)) * C.a.sqrt()).square().sum(), U)
    with torch.no_grad():
        moved = -(slope @ U.mT + U @ slope.mT)
        G, suppression, N = S.growth_suppression_noise(W, C.a)
        torch.testing.assert_close(G - suppression - N, S.velocity(W, C.a), atol=1e-12, rtol=0)
        torch.testing.assert_close(2 * S.velocity(W, C.a), moved, atol=1e-10, rtol=0)
    one = U[:1].detach()
    step = S.tied_descent(one, C.a, 1e-6, 1)
    torch.testing.assert_close(
        (step[1] - step[0]) / 1e-6, S.velocity(step[0], C.a), atol=1e-4, rtol=0
    )
    both = S.recursion(step[0], C.a, 1e-6, 1)
    torch.testing.assert_close(both[1], step[1], atol=1e-10, rtol=0)


@pytest.mark.parametrize("relu", [False, True])
def test_descent_is_torchs_own_optimiser_on_each_seed_alone(relu):
    net, x = S.Network(3, 4, relu), C.samples(5, seed=4)
    ours = S.descend(net, C, x, eta=0.05, steps=6, seeds=2, mean=True)
    for seed in range(2):
        layers = [
            torch.nn.Linear(layer.shape[2], layer.shape[1], bias=False).double()
            for layer in net.layers(3, 2)
        ]
        for module, start in zip(layers, net.layers(3, 2), strict=True):
            module.weight.data = start[seed].clone()
        act = torch.nn.ReLU() if relu else torch.nn.Identity()
        model = torch.nn.Sequential(layers[0], act, layers[1], act, layers[2])
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
        for step in range(6):
            torch.testing.assert_close(ours[step, seed], model(C.xhat), atol=1e-12, rtol=0)
            optimiser.zero_grad()
            (0.5 * (model(x) - x).square().sum(1).mean()).backward()
            optimiser.step()


def test_rise_and_order():
    loss = torch.tensor([[4.0, 4.0], [1.0, 3.0], [2.0, 2.0], [0.5, 1.0]])
    assert S.rise(loss).tolist() == [0.25, 0.0]
    outputs = torch.tensor([[[0.0, 0.0]], [[0.9, 0.5]], [[0.5, 1.4]], [[1.0, 1.5]]]).double()
    assert S.learned_at(outputs, S.Concepts((1.0, 1.5), (0.1, 0.1), 2)).tolist() == [[3.0, 2.0]]
    diverged = torch.full((4, 1, 2), torch.nan).double()
    assert S.learned_at(diverged, S.Concepts((1.0, 1.5), (0.1, 0.1), 2)).tolist() == [[4.0, 4.0]]
    first, second = S.Network(2, 3).layers(3, 1)
    assert (first != second).all()  # layers of one shape are drawn apart
    assert S.Network(2, 3, positive=True).layers(2, 1)[0].min() >= 0
