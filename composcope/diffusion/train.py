"""The training loop: everything random about the image at `position` comes from (seed, position)
and nothing else.

alpha(t) = alpha_ref min(t / t_warm, 1) / sqrt(max(t / t_ref, 1)),  t in images     (EDM2, eq. 67)

So a run stopped at any step goes on bit for bit, and the number of processes changes round-off
only."""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import numba
import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from composcope.diffusion import checkpoint
from composcope.diffusion.checkpoint import State, Weights
from composcope.diffusion.log import Log, sums
from composcope.diffusion.loss import Loss, Noise, generator
from composcope.diffusion.penalty import Penalty
from composcope.errors import InputError, Stopped
from composcope.progress import bar
from composcope.signals import Stop
from composcope.tensors import save_tensors

T = TypeVar("T")
MOST = 1e15  # of anything that a recipe counts
EVERY = ("log_every", "checkpoint_every", "sheet_every", "average_every")
# shares of the training after which the average is kept
SNAPSHOTS = {"early": 0.25, "middle": 0.5, "final": 1.0}


@dataclass(frozen=True)
class Recipe:
    """How long, how fast and on what noise a model is trained. Lengths are in images, intervals in
    steps."""

    images: int  # to train on
    batch: int = 64  # images a step
    lr: float = 8e-3  # alpha_ref, the reference learning rate
    warmup: int = 6_400  # t_warm: over these the rate rises
    decay: int = 64_000  # t_ref: from here on the rate falls as 1 / sqrt(t)
    P_mean: float = -0.3  # mean of ln sigma
    P_std: float = 1.3  # its standard deviation
    optimizer: Literal["adam", "muon"] = "adam"  # muon: on matrices, adam on the rest
    cool: int = 0  # over the last so many the rate falls to zero as well
    penalty: float = 0.0  # weight of the influence that conditions have far away (penalty.py)
    penalty_radius: float = 0.1875  # beyond this it is far, in image sides
    sigma_rels: tuple[float, ...] = (0.05, 0.10)  # widths of the averages
    sigma_rel: float = 0.10  # the one of them that is the trained model
    accumulate: int = 1  # parts in which a process works through its share of a batch
    bf16: bool = False  # bfloat16 autocast
    compile: bool = False  # torch.compile
    channels_last: bool = False  # layout of weights and activations
    log_every: int = 25  # a line of the log
    checkpoint_every: int = 100  # and at least every few minutes, see checkpoint.SECONDS
    sheet_every: int = 500  # a picture of samples
    average_every: int = 250  # averages kept for other widths afterwards
    seed: int = 0  # of the first weights, the scenes and the noise

    def __post_init__(self) -> None:
        for name in ("images", "batch", "decay", "accumulate", "lr", "P_std", *EVERY):
            value = getattr(self, name)
            if not 0 < value < MOST:
                wanted = f"a training needs one above 0 and below {MOST:g}"
                raise InputError(f"{name} = {value}: {wanted}")
        for name in ("warmup", "cool", "seed"):
            value = getattr(self, name)
            if not 0 <= value < 2**63:
                raise InputError(f"{name} = {value}: it is a number from 0 to 2^63 - 1")
        if not -100 < self.P_mean < 100:
            raise InputError(f"P_mean = {self.P_mean}: ln sigma is between -100 and 100")
        if not 0 <= self.penalty < MOST or not 0 < self.penalty_radius <= 1:
            raise InputError(
                f"penalty = {self.penalty}, penalty_radius = {self.penalty_radius}: a weight of 0 "
                "or more, and a radius above 0 and at most 1"
            )
        inside = all(0.001 <= s <= 0.28 for s in self.sigma_rels)
        if self.sigma_rel not in self.sigma_rels or not inside:
            raise InputError(
                f"sigma_rels = {self.sigma_rels}: widths of averages from 0.001 to 0.28, "
                f"{self.sigma_rel} among them"
            )

    @property
    def steps(self) -> int:
        return -(-self.images // self.batch)


@dataclass(frozen=True)
class Examples:
    """What the network sees of some images: the same number of views of each, one image after
    another."""

    x0: Float[Tensor, "views channel height width"]
    cond: Float[Tensor, "views features"] | None
    # 0 where a view leaves the image: no noise there
    inside: Float[Tensor, "views 1 height width"] | None = None


Make: TypeAlias = Callable[[int, int], Examples]  # (position of the first image, how many)


def learning_rate(recipe: Recipe, t: int) -> float:
    rate = recipe.lr * min(t / max(recipe.warmup, 1), 1) / math.sqrt(max(t / recipe.decay, 1))
    left = recipe.steps * recipe.batch - t
    return rate * min(left / recipe.cool, 1) if recipe.cool else rate


def starts(recipe: Recipe, first: int, size: int, parts: range) -> Iterator[int]:
    """Where the parts that a process works on begin, from step `first` on."""
    for step in range(first, recipe.steps):
        for part in parts:
            yield recipe.batch * step + size * part


def ahead(make: Callable[[int], T], starts: Iterable[int], makers: int = 1) -> Iterator[T]:
    """make(start) for each start in order, made by so many threads, a few ahead of their use.

    How many cores to use is a setting of each thread: the makers take over their caller's."""
    cores = torch.get_num_threads(), numba.get_num_threads()
    with ThreadPoolExecutor(makers, initializer=use, initargs=cores) as pool:
        pending: deque = deque()
        for start in starts:
            pending.append(pool.submit(make, start))
            if len(pending) > makers + 1:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def use(torch_threads: int, numba_threads: int) -> None:
    """Threads of this thread's work from here on. Numba comes first: where both use OpenMP, the
    first call to it sets OpenMP's number to all cores, and torch's with it."""
    numba.set_num_threads(min(numba_threads, numba.config.NUMBA_NUM_THREADS))
    torch.set_num_threads(torch_threads)


def parts_of(recipe: Recipe) -> int:
    """Of a batch, over all processes."""
    parts = int(os.environ.get("WORLD_SIZE", 1)) * recipe.accumulate
    if recipe.batch % parts:
        raise InputError(f"a batch of {recipe.batch} images cannot be cut into {parts} equal parts")
    return parts


@contextmanager
def processes() -> Iterator[int]:
    """The rank of this process: torchrun's, or 0. Inside, `dist` is ready where there is more than
    one."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield 0
        return
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


def by_the_first(work: Callable[[], Any]) -> Any:
    """What `work` returns, done by the first process for all; what it refuses, all refuse, and one
    says why."""
    if not dist.is_initialized():
        return work()
    outcome: list[Any] = [None, None]
    if dist.get_rank() == 0:
        try:
            outcome = [work(), None]
        except (InputError, OSError) as error:
            outcome = [None, error]
    dist.broadcast_object_list(outcome)
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


def asked_to_stop(stop: Stop, device: torch.device | str) -> int:
    """The signal that one of the processes got, or 0; the same answer for all of them."""
    if not dist.is_initialized():
        return stop.number
    number = torch.tensor(stop.number, device=device)
    dist.all_reduce(number, dist.ReduceOp.MAX)
    return int(number)


@runtime_checkable
class Lesson(Protocol):
    """How what was made for a part of a batch becomes a loss, and what that leaves for the next
    step: `tensors` go into the checkpoint."""

    def __call__(
        self, loss: nn.Module, made: Any, sources: list[torch.Generator]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "2 4"]]:
        """The mean loss and the numbers for the log; `sources` are the images' generators."""
        ...

    def tensors(self) -> dict[str, Tensor]: ...

    def restore(self, kept: Weights) -> None: ...


class Denoising:
    """The lesson of images: noise is put on them, and the network takes it away. Nothing is left
    for the next step."""

    def __init__(self, recipe: Recipe, penalty: Penalty | None = None):
        self.recipe = recipe
        self.penalty = penalty

    def __call__(
        self, loss: nn.Module, made: Examples, sources: list[torch.Generator]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "2 4"]]:
        device = sources[0].device
        x0 = made.x0.to(device=device, memory_format=layout(self.recipe))
        cond = None if made.cond is None else made.cond.to(device)
        levels = Noise(self.recipe.P_mean, self.recipe.P_std)
        views = len(x0) // len(sources)
        sigma, noise = levels.draw(x0, [source for source in sources for _ in range(views)])
        if made.inside is not None:
            noise = noise * made.inside.to(device)
        without: tuple = ()
        if self.penalty is not None and cond is not None:
            without = self.penalty.draw(cond, x0.shape[2:], sources) or ()
        with torch.autocast(device.type, torch.bfloat16, enabled=self.recipe.bf16):
            objective, error, *far = loss(x0, sigma, noise, cond, *without)
        numbers = sums(objective, error, sigma, levels)
        total = objective.mean()
        if self.penalty is not None and far:
            total = total + self.penalty.scaled(far[0])
        return total, numbers

    def tensors(self) -> dict[str, Tensor]:
        return {}

    def restore(self, kept: Weights) -> None:
        pass


def layout(recipe: Recipe) -> torch.memory_format:
    return torch.channels_last if recipe.channels_last else torch.contiguous_format


def train(
    model: nn.Module,
    loss: Loss,
    make: Callable[[int, int], Any],
    recipe: Recipe,
    folder: Path,
    renormalize: Callable[[nn.Module], None],
    keep: Callable[[str, Weights], None],
    draw: Callable[[int, Weights], None],
    device: torch.device | str = "cpu",
    makers: int = 1,
    lesson: Lesson | None = None,
) -> None:
    """Train the weights of `model` through `loss`, from the last checkpoint in `folder` on.

    `lesson` says what is learned from what `make` makes, denoising of Examples if it is not given.
    `keep(name, weights)` receives the averaged weights at the moments of SNAPSHOTS and as "final"
    at the end, `draw(step, weights)` at intervals; `makers` threads call `make`. SIGINT and SIGTERM
    end the step and save a checkpoint; then Stopped says where the run goes on."""
    rank = dist.get_rank() if dist.is_initialized() else 0
    ranks = dist.get_world_size() if dist.is_initialized() else 1

    # Set up the model and all that changes with it.
    model.to(device).to(memory_format=layout(recipe))  # type: ignore[call-overload]
    lesson = lesson or Denoising(recipe)
    state = State(model, recipe.optimizer, recipe.sigma_rels)
    average = state.averages[recipe.sigma_rel].average
    totals = torch.zeros(2, 4)

    # Resume from the last checkpoint.
    first = 0
    if found := checkpoint.latest(folder / "checkpoints"):
        first, tensors = found
        state.restore(first, tensors)
        lesson.restore(tensors)
        totals = tensors.get("log/totals", totals)
    saved_step = first
    saved_time = time.monotonic()

    # Distribute and compile.
    if recipe.compile:
        loss.denoiser.net.compile()
    shared = DistributedDataParallel(loss) if ranks > 1 else None

    # Prepare the data: a step's images are cut into parts, `accumulate` for each process.
    size = recipe.batch // parts_of(recipe)
    mine = range(rank * recipe.accumulate, (rank + 1) * recipe.accumulate)
    begin = starts(recipe, first, size, mine)
    data = ahead(lambda start: (start, make(start, size)), begin, makers)

    def save_checkpoint(step: int) -> None:
        nonlocal saved_step, saved_time
        if rank == 0 and step > saved_step:
            tensors = state.tensors() | lesson.tensors() | {"log/totals": totals}
            checkpoint.save(folder / "checkpoints", step, tensors)
        saved_step = step
        saved_time = time.monotonic()

    def draw_samples(step: int) -> None:
        if rank == 0 and step and (step % recipe.sheet_every == 0 or step == recipe.steps):
            stop.attempt(lambda: draw(step, average))

    def end_if_asked(step: int) -> None:
        if number := asked_to_stop(stop, device):
            save_checkpoint(step)
            where = f"from image {step * recipe.batch:,}"
            raise Stopped(f"stopped; the same command goes on {where}", number)

    with Stop(patient=ranks > 1) as stop, Log(folder, first, rank == 0) as log, bar() as shown:
        images = recipe.steps * recipe.batch
        task = shown.add_task("training", total=images, completed=first * recipe.batch)
        clock = time.perf_counter()
        draw_samples(first)

        for step in range(first + 1, recipe.steps + 1):
            end_if_asked(step - 1)

            # Evaluate the loss and accumulate gradients; the last part exchanges them with the
            # other processes.
            step_totals = torch.zeros(2, 4, device=device)
            for part in mine:
                with shared.no_sync() if shared and part != mine[-1] else nullcontext():
                    start, made = next(data)
                    sources = [generator(recipe.seed, start + i, device) for i in range(size)]
                    objective, numbers = lesson(shared or loss, made, sources)
                    (objective / recipe.accumulate).backward()
                    step_totals += numbers
            if ranks > 1:
                dist.all_reduce(step_totals)

            # Check that all is finite, before it reaches a weight or a checkpoint.
            weights = state.weights.values()
            gradients = [weight.grad for weight in weights if weight.grad is not None]
            gradient_norm = float(nn.utils.get_total_norm(gradients))
            if not (math.isfinite(gradient_norm) and bool(step_totals.isfinite().all())):
                raise InputError(
                    f"the loss is not finite at step {step}; {folder} keeps its last good "
                    f"checkpoint; in a new one try a lower --lr than {recipe.lr:g}, "
                    f"a longer --warmup than {recipe.warmup} or no --bf16"
                )

            # Update weights and averages.
            rate = learning_rate(recipe, step * recipe.batch)
            state.update(rate)
            renormalize(model)
            state.average(step)

            # Report status.
            totals += step_totals.cpu()
            status = f"training, loss {float(step_totals[0, 0] / step_totals[1, 0]):.3f}"
            shown.update(task, completed=step * recipe.batch, description=status)
            if step % recipe.log_every == 0 or step == recipe.steps:
                speed = totals[1, 0].item() / (time.perf_counter() - clock)
                extra = {"rate": rate, "gradient": gradient_norm, "speed": speed}
                log.write(step, step * recipe.batch, totals, extra)
                clock = time.perf_counter()
                totals = torch.zeros(2, 4)

            # Save snapshots and averages.
            for name, share in SNAPSHOTS.items():
                if rank == 0 and name != "final" and step == math.ceil(share * recipe.steps):
                    keep(name, average)
            if rank == 0 and step % recipe.average_every == 0:
                half = {name: weight.half() for name, weight in state.averaged().items()}
                save_tensors(folder / "averages" / f"{step:09d}.safetensors", half)

            # Save checkpoint.
            overdue = time.monotonic() - saved_time > checkpoint.SECONDS
            if step % recipe.checkpoint_every == 0 or step == recipe.steps or overdue:
                save_checkpoint(step)

            # Draw samples.
            draw_samples(step)

        # Save the trained model.
        end_if_asked(recipe.steps)
        if rank == 0:
            keep("final", average)
