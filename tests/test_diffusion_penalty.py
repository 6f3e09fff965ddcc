"""The penalty on far influence against its closed form, and nothing of it where it is off."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from composcope.diffusion.denoiser import Precond
from composcope.diffusion.lesson import Denoising, Examples
from composcope.diffusion.loss import Loss, generator
from composcope.diffusion.penalty import FLOOR, SHARE, Penalty, far_share
from composcope.diffusion.recipe import Recipe
from composcope.errors import InputError
from composcope.runs.config import configure
from composcope.runs.training import start
from composcope.scenes.condition import LocationGrid, LocationList

RECIPE = Recipe(images=8, batch=8, penalty=0.5, penalty_radius=0.3)
SIZE = (8, 8)


class Painter(nn.Module):
    """F paints `near` into the cell of each condition and `far` everywhere else, for each."""

    def __init__(self, near, far):
        super().__init__()
        self.near, self.far = nn.Parameter(torch.tensor(near)), nn.Parameter(torch.tensor(far))

    def forward(self, x, noise_label, cond):
        cells = cond.view(-1, 1, 2, 2).repeat_interleave(4, 2).repeat_interleave(4, 3)
        others = cond.sum(1).view(-1, 1, 1, 1) - cells
        return (cells * self.near + others * self.far).expand(-1, 3, -1, -1)


class Zero(nn.Module):
    def forward(self, noise_label):
        return torch.zeros_like(noise_label)


def test_the_share_is_that_of_the_closed_form():
    """The four cells of a 2 x 2 grid, radius half a cell: beyond it are the other three."""
    conditioner = LocationGrid(2)
    penalty = Penalty(0.5, 0.25 + 1e-6, conditioner)
    cond = conditioner([[(0.2, 0.2)], [(0.2, 0.2), (0.8, 0.8)], []])
    sources = [generator(3, i) for i in range(3)]
    drawn = None
    while drawn is None:  # until a batch is penalised
        drawn = penalty.draw(cond, SIZE, sources)
    without, far = drawn
    assert without[0].sum() == 0 and without[1].sum() == 1 and without[2].sum() == 0
    assert far[0, 0, :4, :4].sum() == 0 and far[0].sum() == 48 and far[2].sum() == 0
    assert far[1].sum() == 48

    net = Painter(2.0, 0.5)
    x0 = torch.zeros(3, 3, *SIZE)
    sigma = torch.tensor([0.5, 1.0, 2.0])
    objective, error, shares = Loss(Precond(net, Zero(), 0.5))(
        x0, sigma, torch.zeros_like(x0), cond, without, far
    )
    # c_out^2 lambda = 1, so influence is F's own: 4 in a quarter of the pixels, 0.25 in the rest.
    total = 4 / 4 + 0.25 * 3 / 4
    expected = 0.25 * 3 / 4 / (total + FLOOR)
    torch.testing.assert_close(shares, torch.tensor([expected, expected, 0.0]))
    plain = Loss(Precond(net, Zero(), 0.5))(x0, sigma, torch.zeros_like(x0), cond)
    assert len(plain) == 2
    torch.testing.assert_close(torch.stack(plain), torch.stack([objective, error]))
    assert float(penalty.scaled(shares.detach())) == pytest.approx(0.5 / SHARE * 2 * expected / 3)


def test_it_pulls_far_influence_down():
    net = Painter(2.0, 0.5)
    cond = torch.eye(4)
    influence = net(torch.zeros(4, 3, 8, 8), None, cond).square()
    far = 1 - cond.view(4, 1, 2, 2).repeat_interleave(4, 2).repeat_interleave(4, 3)
    far_share(influence, far).mean().backward()
    assert net.far.grad > 0 and net.near.grad < 0


def test_lists_have_places_too():
    conditioner = LocationList()
    cond = conditioner([[(0.25, 0.25), (0.75, 0.25)]] * 40)
    penalty = Penalty(1.0, 0.2, conditioner)
    batches = [
        penalty.draw(cond, (16, 16), [generator(9, 40 * b + i) for i in range(40)])
        for b in range(40)
    ]
    drawn = [batch for batch in batches if batch is not None]
    assert 2 < len(drawn) < 20  # a quarter of 40
    without, far = drawn[0]
    left = (far[:, 0, 4, 4] == 0) | (far[:, 0, 4, 3] == 0)  # near the place on the left
    assert 5 < int(left.sum()) < 35  # either of the two, by chance
    for i, row in enumerate(without):
        (kept,) = conditioner.places(conditioner.split(row))
        assert float(kept[0]) == pytest.approx(0.75 if left[i] else 0.25, abs=1e-3)


def test_off_is_as_it_was():
    """With no penalty nothing more is drawn, and the loss is that of the images alone."""
    net = Painter(2.0, 0.5)
    made = Examples(torch.randn(8, 3, 8, 8), torch.eye(4).repeat(2, 1))
    losses = []
    for recipe, penalty in (
        (replace(RECIPE, penalty=0.0), None),
        (RECIPE, Penalty(0.5, 0.3, LocationGrid(2))),
    ):
        for batch in range(12):
            sources = [generator(0, 8 * batch + i) for i in range(8)]
            total, numbers = Denoising(recipe, penalty)(
                Loss(Precond(net, Zero(), 0.5)), made, sources
            )
            losses.append((float(total.detach()), numbers.tolist()))
    off, on = losses[:12], losses[12:]
    assert [numbers for _, numbers in off] == [numbers for _, numbers in on]  # the log is the same
    more = [a - b for (a, _), (b, _) in zip(on, off, strict=True)]
    assert all(one >= 0 for one in more) and 0 < sum(one > 1e-6 for one in more) < 12


def test_it_is_refused_where_it_means_nothing(tmp_path):
    for experiment in ("exp2l", "color"):
        with pytest.raises(InputError, match="conditions with places"):
            start(configure(experiment, "smoke", {"penalty": 0.1}), tmp_path / experiment)
        assert not (tmp_path / experiment).exists()
    with pytest.raises(InputError, match="penalty_radius"):
        Recipe(images=8, penalty_radius=0.0)


def test_a_tiny_run_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("composcope.runs.data.MEASURED", 256)
    tiny = {"images": 64, "batch": 8, "log_every": 2}
    for weight in (0.0, 0.2):
        start(configure("exp3", "smoke", tiny | {"penalty": weight}), tmp_path / f"{weight}")
    first, second = (tmp_path / f"{weight}/model.safetensors" for weight in (0.0, 0.2))
    assert first.read_bytes() != second.read_bytes()
