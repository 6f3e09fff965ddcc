"""The loop on a tiny network: going on is bit for bit, parts of a batch add up, what is not finite
stops it."""

import itertools
import json
import math
import time
from dataclasses import replace
from types import SimpleNamespace

import numba
import pytest
import torch
from torch import nn

from composcope.diffusion import checkpoint
from composcope.diffusion.denoiser import Precond
from composcope.diffusion.lesson import Examples
from composcope.diffusion.loss import Loss
from composcope.diffusion.recipe import Recipe, learning_rate
from composcope.diffusion.train import ahead, train, use
from composcope.errors import InputError

EVERY = {"log_every": 2, "checkpoint_every": 4, "sheet_every": 5, "average_every": 3}
RECIPE = Recipe(images=96, batch=8, lr=1e-2, warmup=16, decay=40, **EVERY)

torch.set_num_threads(1)  # as the laptop preset does


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.label = nn.Conv2d(3, 3, 3, padding=1), nn.Linear(2, 3)

    def forward(self, x, noise_label, cond):
        return self.conv(x) * noise_label[:, None, None, None] + self.label(cond)[:, :, None, None]


class Uncertainty(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, noise_label):
        return noise_label * self.scale


def make(start, count):
    """Two views of each image, a pure function of the position."""
    rows = torch.arange(start, start + count).repeat_interleave(2).float()
    x0 = torch.sin(rows[:, None, None, None] + torch.arange(48.0).view(3, 4, 4))
    return Examples(
        x0, torch.stack([rows.cos(), rows.sin()], 1), inside=torch.ones(2 * count, 1, 4, 4)
    )


class Run:
    """One call of `train`, with what it handed out on the way."""

    def __init__(self, folder, recipe=RECIPE, make=make, stop_at=None):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.model = Precond(Net(), Uncertainty(), 0.7)
        self.kept, self.drawn, self.stop_at = {}, [], stop_at
        calls = self.renormalize, self.keep, self.draw
        train(self.model, Loss(self.model), make, recipe, folder, *calls)

    def renormalize(self, model):
        with torch.no_grad():
            model.net.conv.weight.div_(model.net.conv.weight.norm())

    def keep(self, name, weights):
        self.kept[name] = {key: weight.clone() for key, weight in weights.items()}

    def draw(self, step, weights):
        self.drawn.append(step)
        if step == self.stop_at:
            raise KeyboardInterrupt


def logged(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def test_the_speed_is_that_of_images_not_of_their_views(tmp_path, monkeypatch):
    """A second a reading of the clock; a run that goes on counts what it did itself."""
    seconds = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(seconds), monotonic=time.monotonic)
    monkeypatch.setattr("composcope.diffusion.train.time", clock)
    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path / "a", stop_at=5)
    Run(tmp_path / "a")
    speeds = {line["step"]: line["speed"] for line in logged(tmp_path / "a")}
    assert speeds == dict.fromkeys((2, 4, 6, 8, 10, 12), 16)


def test_a_run_that_was_stopped_ends_as_if_it_never_was(tmp_path):
    through = Run(tmp_path / "a")
    for stop_at in (5, 10):
        with pytest.raises(KeyboardInterrupt):
            Run(tmp_path / "b", stop_at=stop_at)
    resumed = Run(tmp_path / "b")
    assert same(through.model.state_dict(), resumed.model.state_dict())
    assert same(through.kept["final"], resumed.kept["final"])
    assert same(
        checkpoint.latest(tmp_path / "a/checkpoints")[1],
        checkpoint.latest(tmp_path / "b/checkpoints")[1],
    )
    assert resumed.drawn == [10, 12]
    numbers = [{k: v for k, v in line.items() if k != "speed"} for line in logged(tmp_path / "a")]
    assert numbers == [
        {k: v for k, v in line.items() if k != "speed"} for line in logged(tmp_path / "b")
    ]
    assert [line["step"] for line in numbers] == [2, 4, 6, 8, 10, 12]


def test_it_learns_and_keeps_what_it_promises(tmp_path):
    run = Run(
        tmp_path, replace(RECIPE, images=960, log_every=20, checkpoint_every=60, average_every=40)
    )
    lines = logged(tmp_path)
    assert lines[-1]["loss"] < 0.9 * lines[0]["loss"]
    assert set(run.kept) == {"first", "early", "middle", "final"}
    assert not same(run.kept["early"], run.kept["middle"])
    assert run.model.net.conv.weight.norm().item() == pytest.approx(1, abs=1e-6)
    assert len(list((tmp_path / "averages").iterdir())) == 3
    assert {"error/low", "error/middle", "error/high", "rate"} <= set(lines[-1])
    assert list((tmp_path / "tensorboard").iterdir())


def test_a_batch_in_parts_gives_the_weights_of_the_whole(tmp_path):
    whole, parts = Run(tmp_path / "a"), Run(tmp_path / "b", replace(RECIPE, accumulate=4))
    for name, weight in whole.model.state_dict().items():
        torch.testing.assert_close(parts.model.state_dict()[name], weight, atol=1e-5, rtol=0)
    with pytest.raises(InputError, match="a batch of 8 images cannot be cut into 3 equal parts"):
        Run(tmp_path / "c", replace(RECIPE, accumulate=3))


def test_a_loss_that_is_not_finite_stops_before_it_does_harm(tmp_path):
    def broken(start, count):
        examples = make(start, count)
        return replace(examples, x0=examples.x0 * math.nan) if start == 9 * 8 else examples

    with pytest.raises(InputError, match=r"not finite at step 10.*try a lower --lr than 0.01"):
        Run(tmp_path, make=broken)
    step, tensors = checkpoint.latest(tmp_path / "checkpoints")
    assert step == 8 and all(tensor.isfinite().all() for tensor in tensors.values())


def test_the_learning_rate_rises_then_falls_as_the_inverse_square_root():
    rates = [learning_rate(RECIPE, t) for t in (8, 16, 40, 160)]
    assert rates == pytest.approx([0.005, 0.01, 0.01, 0.005])


def test_batches_come_in_order_and_errors_come_through():
    assert list(ahead(lambda start: start * 2, range(7))) == [0, 2, 4, 6, 8, 10, 12]
    with pytest.raises(ZeroDivisionError):
        list(ahead(lambda start: 1 // (3 - start), range(7)))


def test_the_worker_uses_as_many_cores_as_its_caller():
    before = torch.get_num_threads(), numba.get_num_threads()
    try:
        for cores in {1, numba.config.NUMBA_NUM_THREADS}:
            use(cores, cores)
            assert list(
                ahead(lambda _: (torch.get_num_threads(), numba.get_num_threads()), [0])
            ) == [(cores, cores)]
    finally:
        use(*before)


@pytest.mark.parametrize("option", ["bf16", "channels_last"])
def test_faster_arithmetic_learns_the_same(tmp_path, option):
    plain, fast = Run(tmp_path / "a"), Run(tmp_path / "b", replace(RECIPE, **{option: True}))
    for name, weight in plain.model.state_dict().items():
        torch.testing.assert_close(fast.model.state_dict()[name], weight, atol=3e-2, rtol=0)
    assert logged(tmp_path / "b")[-1]["loss"] == pytest.approx(
        logged(tmp_path / "a")[-1]["loss"], rel=0.02
    )
