"""A student learns to say in one pass what a teacher says in many, from conditions alone.

    loss = E [ lambda(sigma) / exp(u(sigma)) |D_student(x) - D_teacher(x)|^2 + u(sigma) ]

x are states of walks from noise: half of the walkers follow the teacher, half the student, so that
it also learns to go on from where it has led itself. An evaluation of the teacher is both the target
at a state and the step away from it, and is learned from again: it costs K + 1 passes."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from composcope.diffusion.checkpoint import Weights
from composcope.diffusion.denoiser import Denoiser, X
from composcope.diffusion.lesson import Learned
from composcope.diffusion.log import sums
from composcope.diffusion.loss import Loss, Noise, generator
from composcope.diffusion.recipe import Recipe, layout
from composcope.errors import InputError

# Noise levels of a walk: the sampler's, but not below what decides anything of an image.
HIGHEST = 80.0
LOWEST = 0.02
RHO = 7.0  # EDM, eq. 5


@dataclass(frozen=True)
class Walks:
    """How states are come by."""

    steps: int = 12  # noise levels from noise to image
    reuse: int = 2  # times that an evaluation of the teacher is learned from, on average
    memory: int = 128  # last states, from which those to learn from again are chosen

    def __post_init__(self) -> None:
        for name, most in (("steps", 1000), ("reuse", 100), ("memory", 100_000)):
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"{name} = {getattr(self, name)}: walks have from 1 to {most}")

    def walkers(self, batch: int) -> int:
        return max(batch // self.reuse, 1)

    def sigma(self, at: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The noise level after `at` of the steps, which need not be whole (EDM, eq. 5)."""
        high, low = HIGHEST ** (1 / RHO), LOWEST ** (1 / RHO)
        return (high + at / self.steps * (low - high)) ** RHO


@dataclass(frozen=True)
class Starts:
    """The walks that begin at a step, each with its levels shifted: the student is to know all."""

    step: int
    walker: Int[Tensor, " new"]
    noise: Float[Tensor, "new channel height width"]
    cond: Float[Tensor, "new features"]
    shift: Float[Tensor, " new"]


Ask = Callable[[int], Float[Tensor, " features"]]  # the number of a walk -> its cond


def starts_of(
    walks: Walks, recipe: Recipe, shape: tuple[int, int, int], ask: Ask
) -> Callable[[int, int], Starts]:
    """(position of the first state, how many) -> the walks that begin there, from (seed, walk).

    Walker i begins anew when step + i is a multiple of the walk's length."""

    def make(start: int, count: int) -> Starts:
        step = start // count
        walkers = walks.walkers(count)
        new = [i for i in range(walkers) if (step + i) % walks.steps == 0]
        numbers = [step * walkers + i for i in new]
        # Positions below zero: the numbers of states are used for the choice of what is learned again.
        sources = [generator(recipe.seed, -1 - number) for number in numbers]
        if not new:
            none = torch.zeros(0, dtype=torch.long)
            return Starts(step, none, torch.zeros(0, *shape), torch.zeros(0, 0), torch.zeros(0))
        noise = torch.stack([torch.randn(shape, generator=source) for source in sources])
        shift = torch.stack([torch.rand((), generator=source) for source in sources])
        cond = torch.stack([ask(number) for number in numbers])
        return Starts(step, torch.tensor(new), noise, cond, shift)

    return make


class Following:
    """The lesson of a student: at the states of walks it is to say what the teacher says.

    All of its tensors go into checkpoints, so that a distillation goes on bit for bit."""

    def __init__(
        self,
        teacher: Denoiser,
        walks: Walks,
        recipe: Recipe,
        shape: tuple[int, int, int],
        features: int,
        device: torch.device | str = "cpu",
    ):
        self.teacher = teacher
        self.walks = walks
        self.recipe = recipe
        walkers = walks.walkers(recipe.batch)
        # The walkers' states.
        self.x = torch.zeros(walkers, *shape, device=device)
        self.cond = torch.zeros(walkers, features, device=device)
        self.shift = torch.zeros(walkers, device=device)
        self.past = Past(walks.memory, shape, features, device)

    def __call__(self, loss: Loss, made: Starts, sources: list[torch.Generator]) -> Learned:
        device = self.x.device
        self.begin(made)
        order = layout(self.recipe)

        # The teacher's answers at the states of all walkers that are on their way.
        every = torch.arange(len(self.x), device=device)
        way = every[(-every) % self.walks.steps <= made.step]
        at = (made.step + way) % self.walks.steps + self.shift[way]
        sigma = self.walks.sigma(at)
        x = self.x[way].contiguous(memory_format=order)
        cond = self.cond[way]
        precision = torch.autocast(device.type, torch.bfloat16, enabled=self.recipe.bf16)
        with torch.no_grad(), precision:
            target = self.teacher(x, sigma, cond).float()

        # The student's answers there, and at states of before.
        self.past.add(x, sigma, cond, target)
        again = self.past.choose(len(sources) - len(way), sources[0])
        all_x, all_sigma, all_cond, all_targets = (
            torch.cat([new, old]) for new, old in zip((x, sigma, cond, target), again, strict=True)
        )
        with precision:
            all_x = all_x.contiguous(memory_format=order)
            denoised = loss.denoiser(all_x, all_sigma, all_cond)
            objective, error = loss.compared(denoised, all_targets, all_sigma)

        # One step down for each walker, where its guide leads: Euler's (EDM, eq. 3).
        leads = (way % 2 == 0)[:, None, None, None]
        guide = torch.where(leads, target, denoised[: len(way)].detach().to(target))
        share = (self.walks.sigma(at + 1) / sigma)[:, None, None, None]
        self.x[way] = guide + share * (x - guide)

        noise = Noise(self.recipe.P_mean, self.recipe.P_std)
        return objective.mean(), sums(objective, error, all_sigma, noise)

    def begin(self, starts: Starts) -> None:
        """Put the walkers whose walk is over at the start of a new one."""
        if not len(starts.walker):
            return
        new = starts.walker.to(self.x.device)
        sigma = self.walks.sigma(starts.shift)[:, None, None, None]
        self.x[new] = (sigma * starts.noise).to(self.x)
        self.cond[new] = starts.cond.to(self.cond)
        self.shift[new] = starts.shift.to(self.shift)

    def tensors(self) -> dict[str, Tensor]:
        own = {"x": self.x, "cond": self.cond, "shift": self.shift} | self.past.tensors()
        return {f"walks/{name}": tensor for name, tensor in own.items()}

    def restore(self, kept: Weights) -> None:
        for name, tensor in self.tensors().items():
            if name not in kept or kept[name].shape != tensor.shape:
                raise InputError(f"the checkpoint is not of this distillation ({name}); remove it")
            tensor.copy_(kept[name])


class Past:
    """The last states and what the teacher said there; the oldest are overwritten first."""

    def __init__(
        self, size: int, shape: tuple[int, int, int], features: int, device: torch.device | str
    ):
        self.size = size
        self.device = device
        self.count = torch.zeros((), dtype=torch.long)  # states that were ever added
        shapes = {"x": shape, "sigma": (), "cond": (features,), "target": shape}
        self.states = {
            name: torch.zeros(size, *of_one, device=device) for name, of_one in shapes.items()
        }

    def add(self, x: X, sigma: Tensor, cond: Tensor, target: X) -> None:
        index = (int(self.count) + torch.arange(len(x), device=x.device)) % self.size
        index = index[-self.size :]  # of more than it holds, the last
        for memory, new in zip(self.states.values(), (x, sigma, cond, target), strict=True):
            memory[index] = new[-self.size :].to(memory)
        self.count += len(x)

    def choose(self, num: int, source: torch.Generator) -> list[Tensor]:
        held = min(int(self.count), self.size)
        index = torch.randint(held, (max(num, 0),), generator=source, device=source.device)
        return [memory[index.to(self.device)] for memory in self.states.values()]

    def tensors(self) -> dict[str, Tensor]:
        states = {f"past_{name}": memory for name, memory in self.states.items()}
        return {"count": self.count, **states}
