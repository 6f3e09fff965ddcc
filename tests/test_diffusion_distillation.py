"""Distillation: the states are those of walks, a student that can be its teacher becomes it, and
going on is bit for bit."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from composcope.diffusion import checkpoint
from composcope.diffusion.denoiser import Precond
from composcope.diffusion.distillation import FORMLESS, HIDDEN, Following, Walks, starts_of
from composcope.diffusion.loss import Loss, generator
from composcope.diffusion.recipe import Recipe, learning_rate
from composcope.diffusion.train import train
from composcope.errors import InputError

SHAPE = (3, 4, 4)
EVERY = {"log_every": 2, "checkpoint_every": 4, "sheet_every": 5, "average_every": 100}
RECIPE = Recipe(images=96, batch=8, lr=1e-2, warmup=0, decay=10**9, **EVERY)
WALKS = Walks(steps=5, reuse=2)


class Net(nn.Module):
    """F = A(label): what is asked decides the whole image."""

    def __init__(self, seed):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.label = nn.Linear(2, 48)

    def forward(self, x, noise_label, cond):
        return self.label(cond).view(-1, *SHAPE)


class Uncertainty(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, noise_label):
        return noise_label * 0 + self.scale


def ask(number):
    """Two conditions, the second of which may be nothing."""
    return torch.tensor([[1.0, 0.0], [0.0, number % 3]])


def lesson_of(teacher, walks=WALKS, recipe=RECIPE):
    return Following(teacher, walks, recipe, SHAPE, (2, 2))


class Distillation:
    """One call of `train` with a teacher of other weights."""

    def __init__(self, folder, recipe=RECIPE, stop_at=None):
        self.model = Precond(Net(1), Uncertainty(), 0.5)
        self.stop_at = stop_at
        teacher = Precond(Net(2), Uncertainty(), 0.5).requires_grad_(False)
        self.lesson = lesson_of(teacher, recipe=recipe)
        make = starts_of(WALKS, recipe, SHAPE, ask)
        loss = Loss(self.model)
        nothing = (lambda model: None), (lambda name, weights: None)
        train(self.model, loss, make, recipe, folder, *nothing, self.draw, lesson=self.lesson)
        cond = torch.stack([ask(number).sum(0) for number in range(3)])
        asked = torch.ones(3, *SHAPE), torch.tensor([0.1, 1.0, 10.0]), cond
        self.away = float((self.model(*asked) - teacher(*asked)).detach().abs().max())

    def draw(self, step, weights):
        if step == self.stop_at:
            raise KeyboardInterrupt


def test_states_are_those_of_walks():
    """A teacher that always answers c leads along x = c + sigma / sigma_0 (x_0 - c)."""
    answer = torch.full((1, *SHAPE), 0.7)
    recipe = replace(RECIPE, batch=4)
    lesson = lesson_of(lambda x, sigma, cond: answer.expand_as(x), recipe=recipe)
    loss = Loss(Precond(Net(1), Uncertainty(), 0.5))
    make = starts_of(WALKS, recipe, SHAPE, ask)
    seen = {}
    asked = {}
    for step in range(11):
        made = make(4 * step, 4)
        asked |= dict.fromkeys(made.asking.tolist(), step)
        for walker in made.walker.tolist():
            # Four walkers on a way of five steps.
            assert (step + [0, 1, 2, 3][walker]) % 5 == 0
            seen[walker] = step
        sources = [generator(0, 4 * step + i) for i in range(4)]
        lesson(loss, made, sources)
        # The walker that the teacher leads, after as many steps as since it began.
        walker = 2
        if walker in seen:
            begun = make(4 * seen[walker], 4)
            row = begun.walker.tolist().index(walker)
            at = torch.tensor([0.0, step + 1 - seen[walker]])
            first, now = WALKS.sigma(begun.shift[row] + at)
            start = first * begun.noise[row]
            torch.testing.assert_close(
                lesson.x[walker], answer[0] + now / first * (start - answer[0])
            )
            # Something new at each step whose levels are all above HIDDEN, and at the first.
            hidden = (WALKS.sigma(torch.arange(1.0, 6.0)) > HIDDEN).nonzero().flatten().tolist()
            last = seen[walker] + max(since for since in hidden if seen[walker] + since <= step)
            assert asked[walker] == last
            assert torch.equal(lesson.parts[walker], ask(last * 4 + walker))
    assert seen == {0: 10, 1: 9, 2: 8, 3: 7}


def test_walkers_are_spread_over_the_noise_levels():
    walks = Walks(steps=12)
    assert walks.phase(torch.arange(4), 4).tolist() == [0, 3, 6, 9]


def test_a_state_of_high_noise_is_learned_from_with_all_and_with_some_of_its_conditions():
    """The teacher is asked for the same states as often as they are learned from, at one level;
    below FORMLESS once, for all of the conditions."""
    calls = []

    def teacher(x, sigma, cond):
        calls.append((x, sigma, cond))
        return torch.zeros_like(x)

    walks = Walks(steps=1, reuse=4)
    recipe = replace(RECIPE, batch=200)
    lesson = Following(teacher, walks, recipe, SHAPE, (3, 3))
    parts = torch.diag(torch.tensor([1.0, 2.0, 4.0]))
    made = starts_of(walks, recipe, SHAPE, lambda number: parts)(0, 200)
    lesson(Loss(Precond(Three(1), Uncertainty(), 0.5)), made, [generator(0, i) for i in range(200)])
    ((x, sigma, cond),) = calls

    # Which states come how often.
    levels = walks.sigma(made.shift)
    times = torch.where(levels > FORMLESS, 4, 1)
    assert torch.equal(sigma, levels.repeat_interleave(times))
    states = levels[:, None, None, None] * made.noise
    assert torch.equal(x, states.repeat_interleave(times, 0))
    first = times.cumsum(0) - times
    assert torch.equal(cond[first], parts.sum(0).expand(200, 3))
    # As many as the cost of a student counts on, within chance.
    assert len(x) / 200 == pytest.approx(walks.views, rel=0.1)

    # A chance from 0 to 1 for all conditions of a set: none to three of them come equally often.
    others = torch.ones(len(x), dtype=torch.bool)
    others[first] = False
    kept = cond[others] / parts.sum(0)
    assert set(kept.unique().tolist()) == {0.0, 1.0}
    counts = kept.sum(1).long().bincount(minlength=4)
    assert counts.sum() == int((levels > FORMLESS).sum()) * 3
    assert (counts > counts.sum() * 0.18).all()


class Three(Net):
    """Of three features."""

    def forward(self, x, noise_label, cond):
        return super().forward(x, noise_label, cond[:, :2])


def test_half_of_the_walkers_follow_the_student():
    lesson = lesson_of(lambda x, sigma, cond: torch.zeros_like(x), Walks(steps=1, reuse=1))
    model = Precond(Net(1), Uncertainty(), 0.5)
    made = starts_of(Walks(steps=1, reuse=1), RECIPE, SHAPE, ask)(0, 8)
    lesson(Loss(model), made, [generator(0, i) for i in range(8)])
    walks = Walks(steps=1, reuse=1)
    sigma, lower = walks.sigma(made.shift), walks.sigma(made.shift + 1)
    x = sigma[:, None, None, None] * made.noise
    said = model(x, sigma, made.parts.sum(1)).detach()
    said[::2] = 0
    share = (lower / sigma)[:, None, None, None]
    torch.testing.assert_close(lesson.x, said + share * (x - said))


def test_a_student_that_can_be_its_teacher_becomes_it(tmp_path):
    few = Distillation(tmp_path / "few")
    recipe = replace(RECIPE, images=8 * 600, lr=3e-2, cool=8 * 600)
    run = Distillation(tmp_path / "many", recipe)
    assert few.away > 0.1 and run.away < 2e-3


def test_a_distillation_that_was_stopped_ends_as_if_it_never_was(tmp_path):
    through = Distillation(tmp_path / "a")
    for stop_at in (5, 10):
        with pytest.raises(KeyboardInterrupt):
            Distillation(tmp_path / "b", stop_at=stop_at)
    Distillation(tmp_path / "b")
    first, second = (checkpoint.latest(tmp_path / name / "checkpoints")[1] for name in "ab")
    assert {"walks/x", "walks/parts", "walks/shift"} <= set(first)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert torch.equal(through.lesson.x, first["walks/x"])


def test_a_checkpoint_of_something_else_is_refused():
    with pytest.raises(InputError, match="not of this distillation"):
        lesson_of(lambda x, sigma, cond: x).restore({"walks/x": torch.zeros(1)})
    for wrong in ({"steps": 0}, {"reuse": 0}):
        with pytest.raises(InputError, match="walks have from 1"):
            Walks(**wrong)


def test_the_rate_falls_to_zero():
    recipe = replace(RECIPE, cool=48)
    rates = [learning_rate(recipe, t) for t in (8, 48, 72, 96)]
    assert rates == [pytest.approx(1e-2), pytest.approx(1e-2), pytest.approx(5e-3), 0]
