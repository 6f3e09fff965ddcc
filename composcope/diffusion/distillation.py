"""A student learns to say in one pass what a teacher says in many, from conditions alone.

    loss = E [ lambda(sigma) / exp(u(sigma)) |D_student(x) - D_teacher(x)|^2 + u(sigma) ]

x are states of walks from noise: half of the walkers follow the teacher, half the student, so that
it also learns to go on from where it has led itself. An evaluation of the teacher is both the
target at a state and the step away from it, and costs K + 1 passes: nothing asked, and each
condition alone. Of these passes every part of the K conditions has its answer, which costs the
teacher nothing more: where noise is high and a state is little but its conditions, it is learned
what to say to all of them and to some of them; below, where states differ, to all of them. And
while an image is hidden by the noise, a walk asks for other conditions at each step."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from composcope.diffusion.checkpoint import Weights
from composcope.diffusion.denoiser import Denoiser
from composcope.diffusion.lesson import Learned
from composcope.diffusion.log import sums
from composcope.diffusion.loss import Loss, Noise, generator
from composcope.diffusion.recipe import Recipe, layout
from composcope.diffusion.sample import level, slope
from composcope.errors import InputError

# Noise levels of a walk: the sampler's, but not below what decides anything of an image.
HIGHEST = 80.0
LOWEST = 0.02
# Above this noise level a state is learned from with several sets of conditions (LOG.md).
FORMLESS = 2.0
# Above this one it does not show yet what was asked for, so a walk may ask for something else.
HIDDEN = 8.0


@dataclass(frozen=True)
class Walks:
    """How states are come by."""

    steps: int = 12  # noise levels from noise to image
    reuse: int = 4  # times a formless state is learned from: all of its conditions, then some

    def __post_init__(self) -> None:
        for name, most in (("steps", 1000), ("reuse", 100)):
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"{name} = {getattr(self, name)}: walks have from 1 to {most}")

    def phase(self, walker: Int[Tensor, " n"], walkers: int) -> Int[Tensor, " n"]:
        """Steps that a walker is ahead of the first one: together they are at all noise levels."""
        return walker * self.steps // walkers

    def sigma(self, at: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The noise level after `at` of the steps, which need not be whole."""
        return level(at / self.steps, LOWEST, HIGHEST)

    @property
    def views(self) -> float:
        """How many times a state is learned from, on average."""
        formless = level(torch.linspace(0, 1, 10_001), LOWEST, HIGHEST) > FORMLESS
        return 1 + (self.reuse - 1) * formless.double().mean().item()


@dataclass(frozen=True)
class Starts:
    """The walks that begin at a step, each with its levels shifted: the student is to know all.
    And those that ask for something new, the former among them."""

    step: int
    walker: Int[Tensor, " new"]
    noise: Float[Tensor, "new channel height width"]
    shift: Float[Tensor, " new"]
    asking: Int[Tensor, " asking"]
    parts: Float[Tensor, "asking most features"]


# The number of a state -> what is asked for there: a vector a condition, zeros where it has fewer.
Ask = Callable[[int], Float[Tensor, "most features"]]


def starts_of(
    walks: Walks, recipe: Recipe, shape: tuple[int, int, int], ask: Ask
) -> Callable[[int, int], Starts]:
    """(position of the first state, how many) -> the walks that begin there, from (seed, walk)."""

    def make(start: int, count: int) -> Starts:
        step = start // count
        every = torch.arange(count)
        taken = (step + walks.phase(every, count)) % walks.steps
        new = every[taken == 0]
        # Positions below zero: the numbers of states are used for the choice of conditions.
        sources = [generator(recipe.seed, -1 - number) for number in (start + new).tolist()]
        noise = [torch.randn(shape, generator=source) for source in sources]
        shift = [torch.rand((), generator=source) for source in sources]
        asking = every[(taken == 0) | (walks.sigma(taken + 1.0) > HIDDEN)]
        parts = [ask(number) for number in (start + asking).tolist()]
        return Starts(step, new, stacked(noise, 3), stacked(shift, 0), asking, stacked(parts, 2))

    return make


def stacked(tensors: list[Tensor], axes: int) -> Float[Tensor, "n *axes"]:
    """Of none, none, with as many axes."""
    return torch.stack(tensors) if tensors else torch.zeros([0] * (1 + axes))


class Following:
    """The lesson of a student: at the states of walks it is to say what the teacher says.

    asked: the most conditions of a walk, and the features of one.
    All of its tensors go into checkpoints, so that a distillation goes on bit for bit."""

    def __init__(
        self,
        teacher: Denoiser,
        walks: Walks,
        recipe: Recipe,
        shape: tuple[int, int, int],
        asked: tuple[int, int],
        device: torch.device | str = "cpu",
    ):
        self.teacher = teacher
        self.walks = walks
        self.recipe = recipe
        walkers = recipe.batch
        # The walkers' states.
        self.x = torch.zeros(walkers, *shape, device=device)
        self.parts = torch.zeros(walkers, *asked, device=device)
        self.shift = torch.zeros(walkers, device=device)

    def __call__(self, loss: Loss, made: Starts, sources: list[torch.Generator]) -> Learned:
        device = self.x.device
        self.begin(made)
        order = layout(self.recipe)

        # The states of all walkers that are on their way, once for each set of conditions.
        every = torch.arange(len(self.x), device=device)
        phase = self.walks.phase(every, len(every))
        way = every[(-phase) % self.walks.steps <= made.step]
        at = (made.step + phase[way]) % self.walks.steps + self.shift[way]
        levels = self.walks.sigma(at)
        several = torch.arange(self.walks.reuse, device=device) == 0
        state, view = torch.where(several | (levels > FORMLESS)[:, None])
        x = self.x[way][state].contiguous(memory_format=order)
        sigma = levels[state]
        cond = self.conds(sources)[way][state, view]

        # The teacher's answers there, and the student's.
        precision = torch.autocast(device.type, torch.bfloat16, enabled=self.recipe.bf16)
        with torch.no_grad(), precision:
            target = self.teacher(x, sigma, cond).float()
        with precision:
            denoised = loss.denoiser(x, sigma, cond)
            objective, error = loss.compared(denoised, target, sigma)

        # One step down for each walker, where its guide leads when asked for all: Euler's.
        leads = (way % 2 == 0)[:, None, None, None]
        guide = torch.where(leads, target[view == 0], denoised[view == 0].detach().to(target))
        now, lower = (s[:, None, None, None] for s in (levels, self.walks.sigma(at + 1)))
        self.x[way] += (lower - now) * slope(self.x[way], guide, now)

        noise = Noise(self.recipe.P_mean, self.recipe.P_std)
        return objective.mean(), sums(objective, error, sigma, noise)

    def conds(self, sources: list[torch.Generator]) -> Float[Tensor, "walker view features"]:
        """For each walker the cond of all of its conditions, then of some: any number of them."""
        size = self.walks.reuse, 1 + self.parts.shape[1]
        draws = [torch.rand(size, generator=source, device=source.device) for source in sources]
        draw = torch.stack(draws).to(self.parts)
        kept = draw[..., 1:] < draw[..., :1]
        kept[:, 0] = True
        return kept.to(self.parts) @ self.parts

    def begin(self, starts: Starts) -> None:
        """Put the walkers whose walk is over at the start of a new one, and ask what is new."""
        if len(starts.walker):
            new = starts.walker.to(self.x.device)
            sigma = self.walks.sigma(starts.shift)[:, None, None, None]
            self.x[new] = (sigma * starts.noise).to(self.x)
            self.shift[new] = starts.shift.to(self.shift)
        if len(starts.asking):
            self.parts[starts.asking.to(self.parts.device)] = starts.parts.to(self.parts)

    def tensors(self) -> dict[str, Tensor]:
        own = {"x": self.x, "parts": self.parts, "shift": self.shift}
        return {f"walks/{name}": tensor for name, tensor in own.items()}

    def restore(self, kept: Weights) -> None:
        for name, tensor in self.tensors().items():
            if name not in kept or kept[name].shape != tensor.shape:
                raise InputError(f"the checkpoint is not of this distillation ({name}); remove it")
            tensor.copy_(kept[name])
