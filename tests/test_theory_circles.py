"""Circles: areas and colours by closed form, an exact read-out, and a tiny run of the command
itself."""

import math

import pytest
import torch

from composcope import cli
from composcope.experiments import circles as experiment
from composcope.report.circles import contrasts_figure
from composcope.report.commands import command
from composcope.results import Row, only, read_rows
from composcope.theory.circles import CALLED, HELD_OUT, TRAINED, Circles, circle_claims


@pytest.mark.parametrize("contrast", [0.2, 0.7])
def test_the_read_out_is_exact_for_every_combination_even_with_noise(contrast):
    data = Circles(contrast)
    concepts = torch.tensor([*TRAINED, HELD_OUT] * 8)
    centres = 0.4 + 0.2 * torch.rand(len(concepts), 2, generator=torch.Generator().manual_seed(0))
    images = data.draw(data.cond(concepts), centres)
    area = (images[:, 1] == 1).sum((1, 2)) / data.side**2
    torch.testing.assert_close(
        area, math.pi / 4 * data.cond(concepts)[:, 0] ** 2, atol=0.01, rtol=0
    )
    noisy = images + 0.05 * torch.randn(images.shape, generator=torch.Generator().manual_seed(1))
    assert torch.equal(data.read(noisy), concepts)
    assert data.read(0 * images[:1]).tolist() == [[-1, -1]]


def test_training_never_shows_the_held_out_combination_and_does_not_depend_on_the_batch():
    data = Circles()
    whole = data.examples(0, 90)
    assert set(map(tuple, data.read(whole.x0).tolist())) == set(TRAINED)
    torch.testing.assert_close(
        torch.cat([data.examples(0, 30).x0, data.examples(30, 60).x0]), whole.x0
    )


def test_a_denoiser_that_knows_is_always_right_and_one_that_mixes_up_colours_half():
    data = Circles()

    def knows(x, sigma, cond):
        return data.draw(cond, torch.full((len(x), 2), 0.5))

    def swaps(x, sigma, cond):
        return knows(x, sigma, cond).flip(1)

    assert data.right(knows, HELD_OUT, 4).tolist() == [[1, 1]] * 4
    assert data.right(swaps, HELD_OUT, 4).tolist() == [[0, 1]] * 4


@pytest.mark.parametrize("contrast", [0.2, 0.8])
def test_the_signal_of_a_concept_is_an_area_times_squared_differences(contrast):
    data = Circles(contrast, side=256)
    big, small = (math.pi / 4 * diameter**2 for diameter in (0.7, 0.3))
    assert data.signal("colour") == pytest.approx(2 / 3 * big * contrast**2, rel=0.01)
    bright = (
        1 + (1 + contrast / 2) ** 2 + (1 - contrast / 2) ** 2
    ) / 3  # of a red circle, squared, over channels
    assert data.signal("size") == pytest.approx((big - small) * bright, rel=0.01)


def history(
    contrast: float, seed: int, colour: list[float], size: list[float], unseen: list[float]
) -> list[Row]:
    """Rows of a training whose trained combinations all have these accuracies."""
    rows = []
    for concept, seen in (("colour", colour), ("size", size)):
        for asked, name in CALLED.items():
            for step, value in enumerate(unseen if asked == HELD_OUT else seen):
                ends = {"low": max(value - 0.1, 0), "high": min(value + 0.1, 1), "step": step}
                where = {"contrast": contrast, "seed": seed, "concept": concept, "condition": name}
                rows.append(Row("circles/accuracy", value, **ends, **where))
    return rows


def test_claims_of_trainings_that_are_known():
    """Size comes first twice of four times; colour comes forward with contrast in one of two seeds;
    half ever fall."""
    early, late = [0.5, 1.0, 1.0], [0.5, 0.5, 1.0]
    up, down, noisy = [0.2, 0.6, 1.0], [0.9, 0.3, 1.0], [0.5, 0.45, 1.0]
    rows = history(0.2, 0, late, early, up) + history(0.2, 1, early, late, down)
    rows += history(0.8, 0, early, late, noisy) + history(0.8, 1, late, early, down)
    claims = circle_claims(rows)
    assert only(claims, what="sim/circles/order").value == 0.5
    assert only(claims, what="sim/circles/contrast").value == 0.5
    falls = only(claims, what="sim/circles/not_monotone")
    assert (falls.value, falls.n, falls.holds) == (0.5, 8, True)
    assert circle_claims([]) == []
    assert command(claims) == "python -m composcope.experiments.circles"


def test_the_figure_over_contrasts_has_each_seed_and_their_mean():
    rows = history(0.8, 0, [1, 1], [1, 1], [0.2, 0.6]) + history(0.2, 0, [1, 1], [1, 1], [0.1, 0.3])
    rows += history(0.8, 1, [1, 1], [1, 1], [0.4, 1.0])
    few, many = contrasts_figure(rows).axes
    assert few.get_title().endswith("0.2") and many.get_title().endswith("0.8")
    lines = [line.get_ydata().tolist() for line in many.lines]
    assert lines[:3] == [[0.2, 0.6], [0.4, 1.0], pytest.approx([0.3, 0.8])]
    assert len(lines) == 6 and len(few.lines) == 4


def test_the_command_trains_measures_draws_and_goes_on(monkeypatch, tmp_path):
    out = tmp_path / "sim.jsonl"
    words = ["composcope", "sim", "--circles", "--images", "128", "--draws", "2", "--out", str(out)]
    monkeypatch.setattr("sys.argv", words)
    cli.main()
    rows = read_rows(out)
    assert len(rows) == 2 * 4 * 2 and {row.step for row in rows} == {1, 2}
    assert {(row.concept, row.condition) for row in rows} == {
        (c, n) for c in ("colour", "size") for n in CALLED.values()
    }
    assert {(row.contrast, row.seed, row.images, row.n) for row in rows} == {
        (0.5, 0, 64, 2),
        (0.5, 0, 128, 2),
    }
    assert (tmp_path / "sim" / "circles-0.5-128-0" / "circles.png").exists()
    cli.main()  # all done: only the end is drawn once more, the same
    assert [(row.key, row.value) for row in read_rows(out)] == [
        (row.key, row.value) for row in rows
    ]


def test_the_experiment_goes_on_where_it_was_stopped(monkeypatch, tmp_path):
    """Stopped while the second of two trainings is drawn from: the first is whole, and the end is
    the same."""

    def all_of(folder):
        return experiment.main((0.5,), (0, 1), 64, 1, folder / "runs", folder / "rows.jsonl")

    whole = all_of(tmp_path / "whole")
    right = Circles.right
    monkeypatch.setattr(
        Circles, "right", lambda self, *a: right(self, *a) if self.seed == 0 else 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        all_of(tmp_path / "stopped")
    assert {row.seed for row in read_rows(tmp_path / "stopped" / "rows.jsonl")} == {0}
    monkeypatch.setattr(Circles, "right", right)
    again = all_of(tmp_path / "stopped")
    assert [(row.key, row.value) for row in again] == [(row.key, row.value) for row in whole]
    claims = {"sim/circles/order", "sim/circles/not_monotone"}
    assert {row.what for row in again} == {"circles/accuracy", *claims}
