"""The claims of Structured Identity Mapping as numbers; frequencies over seeds, never one of them.

Swing-by: the loss at the unseen corner xhat falls, climbs, and falls again. It counts as one if the
climb is more than a thousandth of the first loss. Where the papers show it as what happens, half of
the seeds or more should show it; where they say it does not happen, one in twenty or fewer. The
authors' scripts use A^2 where their equation has A."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from composcope.theory import sim
from composcope.theory.claim import Claim, Rule, Toy, frequency
from composcope.theory.sim import STARTS, Concepts, Network, rng

SEEDS = 100
SHOWN: tuple[float, Rule] = (0.5, ">=")
NOT_SHOWN: tuple[float, Rule] = (0.05, "<=")
CLIMB = 1e-3  # of the first loss: what counts as Swing-by
FIGURE_5 = Concepts((1.0, 1.5), (0.05, 0.05), d=3)
FIGURE_10 = Concepts((0.7, 1.7, 3.0), (0.05, 0.05, 0.05), d=3)


def positive(d: int, scale: float, seeds: int = SEEDS) -> Tensor:
    """U with entries uniform in [0, scale], as in the authors' scripts."""
    return scale * torch.rand(seeds, d, d, generator=rng(STARTS), dtype=torch.float64)


def dynamics() -> Toy:
    """The closed form, the three terms and the flow, each against gradient descent."""
    c, eta = FIGURE_5, 5e-4  # descent follows the flow to O(eta)
    W0 = 0.3 * torch.randn(3, 3, generator=rng(1), dtype=torch.float64)
    W, gaps = W0, [0.0]
    for step in range(1, 12_001):
        W = W - eta * (W - torch.eye(3).double()) * c.a
        if step % 400 == 0:
            gap = W @ c.xhat - sim.one_layer(W0, c.a, c.xhat, step * eta)
            gaps.append(gap.abs().max().item())
    U = positive(3, 0.2, seeds=10)
    G, S, N = sim.growth_suppression_noise(U @ U.mT, c.a)
    V = sim.velocity(U @ U.mT, c.a)
    flow = sim.recursion(U @ U.mT, c.a, eta, 24_000, every=400)
    descent = sim.tied_descent(U, c.a, eta, 24_000, every=400)
    apart, off = (G - S - N - V).abs().max().item(), (flow - descent).abs().max().item()
    return Toy(
        [
            Claim("one_layer", "Theorem 4.1 against gradient descent", 0, max(gaps), 1e-3),
            Claim("terms", "equation 4.3: G - S - N = V(W)", 0, apart, 1e-12),
            Claim("flow", "equation 4.3 against gradient descent on U", 0, off, 0.01),
            Claim("clock", "dW/dt on the loss as stated, in units of V(W)", 1, clock(U, c), 1e-6),
        ],
        {"time": [step * 0.2 for step in range(61)], "W": descent[:, 0].flatten(1)},
    )


def clock(U: Tensor, c: Concepts) -> float:
    """W = U U^T under gradient flow of 1/2 |(W - I) A^{1/2}|^2, by autograd: speed over V."""
    U = U.clone().requires_grad_()
    loss = 0.5 * ((U @ U.mT - torch.eye(c.d).double()) * c.a.sqrt()).square().sum()
    (slope,) = torch.autograd.grad(loss, U)
    moved, V = -(slope @ U.mT + U @ slope.mT).detach(), sim.velocity((U @ U.mT).detach(), c.a)
    return ((moved * V).sum() / (V * V).sum()).item()


def order() -> Toy:
    """Concepts are learned in the order of a_k = sigma_k^2 + mu_k^2 / s, which mu or sigma reverse.

    Judged at xhat; a run in which neither is learned counts against the claim."""
    cases = {
        "mu": Concepts((1.0, 2.0), (0.05, 0.05), 2),
        "sigma": Concepts((1.0, 2.0), (2.0, 0.05), 2),
    }
    nets = {
        "one_layer": ("one layer", Network(1, 2, scale=0.1)),
        "linear": ("two layers", Network(2, 8, scale=0.1)),
        "relu": ("ReLU", Network(2, 32, relu=True, scale=0.1)),
        "relu_usual_start": ("ReLU from a usual start", Network(2, 32, relu=True)),
    }
    claims = []
    for by, c in cases.items():
        for kind, (words, net) in nets.items():
            x = c.samples(50, seed=0) if net.relu else c.population()
            times = sim.learned_at(sim.descend(net, c, x, 0.02, 800, 50, mean=net.relu), c)
            right = times[:, 0] < times[:, 1] if c.a[0] > c.a[1] else times[:, 0] > times[:, 1]
            says = f"larger a_k first, {words}, order set by {by}"
            claims.append(frequency(f"order/{by}/{kind}", says, 1.0, right))
    return Toy(claims)


@dataclass(frozen=True)
class Case:
    """One setting, whether its source shows Swing-by there, and the OOD loss it takes."""

    says: str
    seen: bool
    loss: Callable[[], Tensor]  # OOD loss, [records seeds]


def tied(c: Concepts, U: Tensor, power: int = 1, steps: int = 3000) -> Tensor:
    W = sim.tied_descent(U, c.a**power, 0.01, steps, every=5)
    return sim.ood_loss(W @ c.xhat, c)


def untied(
    c: Concepts, net: Network, eta: float = 0.02, steps: int = 800, seeds: int = SEEDS
) -> Tensor:
    x = c.samples(50, seed=0) if net.relu else c.population()
    return sim.ood_loss(sim.descend(net, c, x, eta, steps, seeds, mean=net.relu), c)


def gaussian_rows(d: int, width: int) -> Tensor:
    rows = torch.randn(SEEDS, d, width, generator=rng(STARTS), dtype=torch.float64)
    return 0.1 * (3 / width) ** 0.5 * rows


TWO, D3, D64 = (Concepts((1.0, 2.0), (0.05, 0.05), d) for d in (2, 3, 64))
USUAL = 3**-0.5  # torch's default linear layer has this deviation times 1/sqrt(fan in)
WIDE = Network(4, 64, scale=USUAL)
U5 = positive(3, 0.2)


def two_layers(width: int, relu: bool = False, positive: bool = False) -> Callable[[], Tensor]:
    """Untied, on two concepts in two dimensions, from small weights."""
    return partial(untied, TWO, Network(2, width, relu, positive, 0.1))


# fmt: off
CASES = {
    "tied/figure_5":  Case("U U^T, U in [0, .2], mu (1, 1.5), A", True,
                           partial(tied, FIGURE_5, U5)),
    "tied/squared":   Case("the same, A^2 (the scripts)", True,
                           partial(tied, FIGURE_5, U5, 2, 8000)),
    "tied/far_apart": Case("the same, A, mu (1, 2)", True, partial(tied, TWO, positive(2, 0.2))),
    "tied/gaussian":  Case("U U^T, Gaussian rows, d' = 3", True,
                           partial(tied, FIGURE_5, gaussian_rows(3, 3))),
    "tied/wide":      Case("U U^T, Gaussian rows, d' = 64", False,
                           partial(tied, FIGURE_5, gaussian_rows(3, 64))),
    "depth_1":        Case("one layer", False, partial(untied, TWO, Network(1, 2, scale=0.1))),
    "positive/2":     Case("h = 2, positive", True, two_layers(2, positive=True)),
    "positive/32":    Case("h = 32, positive", True, two_layers(32, positive=True)),
    "isotropic/2":    Case("h = 2, isotropic", True, two_layers(2)),
    "isotropic/8":    Case("h = 8, isotropic", True, two_layers(8)),
    "isotropic/32":   Case("h = 32, isotropic", False, two_layers(32)),
    "relu/positive":  Case("ReLU, h = 8, positive", True, two_layers(8, True, True)),
    "relu/isotropic": Case("ReLU, h = 8, isotropic", True, two_layers(8, True)),
    "depth_3":        Case("3 layers, d = h = 3 (Fig. 13)", True,
                           partial(untied, D3, Network(3, 3, scale=USUAL))),
    "depth_4":        Case("4 layers, d = 2, h = 4 (Fig. 3)", True,
                           partial(untied, TWO, Network(4, 4, scale=USUAL))),
    "depth_4/wide":   Case("4 layers, d = h = 64 (Fig. 3)", False,
                           partial(untied, D64, WIDE, 0.1, 120, 20)),
}
# fmt: on


def swing_by() -> Toy:
    """The figure has the first 30 seeds of each case at 200 moments, NaN where there are fewer."""
    claims = []
    curves = torch.full((len(CASES), 30, 200), torch.nan, dtype=torch.half)
    climbed = torch.zeros(len(CASES), 30, dtype=torch.bool)
    for index, (name, case) in enumerate(CASES.items()):
        loss = case.loss()
        climbs = sim.rise(loss) > CLIMB
        share, rule = SHOWN if case.seen else NOT_SHOWN
        claims.append(frequency(f"swing_by/{name}", f"Swing-by: {case.says}", share, climbs, rule))
        moments = torch.linspace(0, len(loss) - 1, 200).long()
        shown = min(30, loss.shape[1])
        curves[index, :shown] = (loss / loss[0])[moments, :shown].T
        climbed[index, :shown] = climbs[:shown]
    shares = [claim.estimate.value for claim in claims]
    seeds = [claim.estimate.n for claim in claims]
    return Toy(
        claims,
        {"names": list(CASES), "loss": curves, "climbed": climbed, "share": shares, "seeds": seeds},
    )


def failure() -> Toy:
    """Figure 10 shows a concept that is never learned. The published step W + eta V(W) on A^2
    leaves the set of U U^T and then diverges; gradient descent on U, which cannot, is at worst
    late."""
    c, U, steps = FIGURE_10, positive(3, 0.2, seeds=50), 25_000
    runs = {
        "published": sim.recursion(U @ U.mT, c.a**2, 0.01, steps, every=200),
        "descent": sim.tied_descent(U, c.a**2, 0.01, steps, every=200),
    }
    # Also when no longer a number.
    lost = {name: ~((W[-1, :, 0, 0] - 1).abs() < 0.5) for name, W in runs.items()}
    left = torch.linalg.eigvalsh(runs["published"].nan_to_num())[..., 0].amin(0) < -1e-6
    # The paper shows one such run.
    seen, says = 1 / len(U), f"Fig. 10, a concept unlearned after {steps:,} steps:"
    published, descent = lost["published"], lost["descent"]
    return Toy(
        [
            frequency("failure/published", f"{says} published step", seen, published, ">="),
            frequency("failure/descent", f"{says} gradient descent on U", seen, descent, ">="),
            frequency("failure/psd", "W stays U U^T under the published step", 1.0, ~left),
        ],
        {name: W[:, :12, 0, 0].T for name, W in runs.items()},
    )


TOYS = (dynamics, order, swing_by, failure)
SIM: dict[str, Callable[[], Toy]] = {toy.__name__: toy for toy in TOYS}
