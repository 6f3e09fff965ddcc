"""Circles: areas and colours by closed form, an exact read-out, and a tiny run of the command itself."""

import math

import pytest
import torch

from composcope import cli
from composcope.results import read
from composcope.theory.circles import HELD_OUT, TRAINED, Circles


@pytest.mark.parametrize("contrast", [0.2, 0.7])
def test_the_read_out_is_exact_for_every_combination_even_with_noise(contrast):
    data = Circles(contrast)
    concepts = torch.tensor([*TRAINED, HELD_OUT] * 8)
    centres = 0.4 + 0.2 * torch.rand(len(concepts), 2, generator=torch.Generator().manual_seed(0))
    images = data.draw(data.cond(concepts), centres)
    area = (images[:, 1] == 1).sum((1, 2)) / data.side**2
    torch.testing.assert_close(area, math.pi / 4 * data.cond(concepts)[:, 0] ** 2, atol=0.01, rtol=0)
    noisy = images + 0.05 * torch.randn(images.shape, generator=torch.Generator().manual_seed(1))
    assert torch.equal(data.read(noisy), concepts)
    assert data.read(0 * images[:1]).tolist() == [[-1, -1]]


def test_training_never_shows_the_held_out_combination_and_does_not_depend_on_the_batch():
    data = Circles()
    whole = data.examples(0, 90)
    assert set(map(tuple, data.read(whole.x0).tolist())) == set(TRAINED)
    torch.testing.assert_close(torch.cat([data.examples(0, 30).x0, data.examples(30, 60).x0]), whole.x0)


def test_a_denoiser_that_knows_is_always_right_and_one_that_mixes_up_colours_half():
    data = Circles()

    def knows(x, sigma, cond):
        return data.draw(cond, torch.full((len(x), 2), 0.5))

    def swaps(x, sigma, cond):
        return knows(x, sigma, cond).flip(1)

    assert data.right(knows, HELD_OUT, 4).tolist() == [[1, 1]] * 4
    assert data.right(swaps, HELD_OUT, 4).tolist() == [[0, 1]] * 4


def test_the_command_trains_measures_draws_and_goes_on(monkeypatch, tmp_path):
    monkeypatch.setattr("composcope.cli.sim.DRAWS", 2)
    words = ["composcope", "sim", "--circles", "--images", "128", "--out", str(tmp_path / "sim.jsonl")]
    monkeypatch.setattr("sys.argv", words)
    cli.main()
    rows = read(tmp_path / "sim.jsonl")
    assert len(rows) == 2 * 4 * 2 and {row.setting["step"] for row in rows} == {1, 2}
    assert (tmp_path / "sim_circles-0.5-128-0.png").exists()
    cli.main()  # all done: nothing is measured again
    assert read(tmp_path / "sim.jsonl") == rows
