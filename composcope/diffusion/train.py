"""The training loop: everything random about the image at `position` comes from (seed, position) and nothing else.

alpha(t) = alpha_ref min(t / t_warm, 1) / sqrt(max(t / t_ref, 1)),  t in images                     (EDM2, eq. 67)

So a run stopped at any step goes on bit for bit, and the number of processes changes round-off only.
"""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

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
from composcope.errors import InputError
from composcope.progress import bar

SNAPSHOTS = {"early": 0.2, "middle": 0.5, "final": 1.0}  # shares of the training after which the average is kept


@dataclass(frozen=True)
class Recipe:
    """How long, how fast and on what noise a model is trained. Lengths are in images, intervals in steps."""

    images: int  # to train on
    batch: int = 64  # images a step
    lr: float = 8e-3  # alpha_ref, the reference learning rate
    warmup: int = 6_400  # t_warm: over these the rate rises
    decay: int = 64_000  # t_ref: from here on the rate falls as 1 / sqrt(t)
    P_mean: float = -0.3  # mean of ln sigma
    P_std: float = 1.3  # its standard deviation
    optimizer: Literal["adam", "muon"] = "adam"  # muon: on matrices, adam on the rest
    sigma_rels: tuple[float, ...] = (0.05, 0.10)  # widths of the averages
    sigma_rel: float = 0.10  # the one of them that is the trained model
    accumulate: int = 1  # parts in which a process works through its share of a batch
    bf16: bool = False  # bfloat16 autocast
    compile: bool = False  # torch.compile
    channels_last: bool = False  # layout of weights and activations
    log_every: int = 25  # a line of the log
    checkpoint_every: int = 100  # a multiple of log_every, so that no line of the log spans a restart
    sheet_every: int = 500  # a picture of samples
    average_every: int = 250  # averages kept for other widths afterwards
    seed: int = 0  # of the first weights, the scenes and the noise

    def __post_init__(self) -> None:
        for name in ("images", "batch", "decay", "accumulate", "lr", "P_std"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InputError(f"{name} = {value}: a training needs one above 0")

    @property
    def steps(self) -> int:
        return -(-self.images // self.batch)


@dataclass(frozen=True)
class Examples:
    """What the network sees of some images: the same number of views of each, one image after another."""

    x0: Float[Tensor, "views channel height width"]
    cond: Float[Tensor, "views features"] | None
    inside: Float[Tensor, "views 1 height width"] | None = None  # 0 where a view leaves the image: no noise there


Make: TypeAlias = Callable[[int, int], Examples]  # (position of the first image, how many)


def learning_rate(recipe: Recipe, t: int) -> float:
    return recipe.lr * min(t / max(recipe.warmup, 1), 1) / math.sqrt(max(t / recipe.decay, 1))


def ahead(make: Callable[[int], Examples], starts: Iterable[int], depth: int = 2) -> Iterator[Examples]:
    """make(start) for each start in order, `depth` of them in the making while the last one is used.

    How many cores to use is a setting of each thread: the worker takes over its caller's.
    """
    cores = torch.get_num_threads(), numba.get_num_threads()
    with ThreadPoolExecutor(1, initializer=use, initargs=cores) as pool:
        pending: deque = deque()
        for start in starts:
            pending.append(pool.submit(make, start))
            if len(pending) > depth:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def use(torch_threads: int, numba_threads: int) -> None:
    torch.set_num_threads(torch_threads)
    numba.set_num_threads(min(numba_threads, numba.config.NUMBA_NUM_THREADS))


def parts_of(recipe: Recipe) -> int:
    """Of a batch, over all processes."""
    parts = int(os.environ.get("WORLD_SIZE", 1)) * recipe.accumulate
    if recipe.batch % parts:
        raise InputError(f"a batch of {recipe.batch} images cannot be cut into {parts} equal parts")
    return parts


@contextmanager
def processes() -> Iterator[tuple[int, int]]:
    """(rank, number of processes): torchrun's, or just this one."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield 0, 1
        return
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def forward(
    loss: nn.Module, examples: Examples, sources: list[torch.Generator], recipe: Recipe, layout: torch.memory_format
) -> tuple[Float[Tensor, ""], Float[Tensor, "2 4"]]:
    """The mean loss of some images' views and the numbers for the log; `sources` are the images' generators."""
    device = sources[0].device
    x0 = examples.x0.to(device=device, memory_format=layout)
    cond = None if examples.cond is None else examples.cond.to(device)
    levels, views = Noise(recipe.P_mean, recipe.P_std), len(x0) // len(sources)
    sigma, noise = levels.draw(x0, [source for source in sources for _ in range(views)])
    if examples.inside is not None:
        noise = noise * examples.inside.to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=recipe.bf16):
        objective, error = loss(x0, sigma, noise, cond)
    return objective.mean(), sums(objective, error, sigma, levels)


def train(
    model: nn.Module,
    loss: Loss,
    make: Make,
    recipe: Recipe,
    folder: Path,
    renormalize: Callable[[nn.Module], None],
    keep: Callable[[str, Weights], None],
    draw: Callable[[int, Weights], None],
    device: torch.device | str = "cpu",
) -> None:
    """Train the weights of `model` through `loss`, from the last checkpoint in `folder` on.

    `keep(name, weights)` receives the averaged weights at the moments of SNAPSHOTS and as "final" at the end,
    `draw(step, weights)` at intervals.
    """
    with processes() as (rank, ranks):
        # Start as every process starts, or where the last sound checkpoint left it.
        layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
        model.to(device).to(memory_format=layout)  # type: ignore[call-overload]
        state, first = State(model, recipe.optimizer, recipe.sigma_rels), 0
        if found := checkpoint.latest(folder / "checkpoints"):
            first = found[0]
            state.restore(*found)
        if recipe.compile:
            loss.denoiser.net.compile()
        shared = DistributedDataParallel(loss) if ranks > 1 else None
        average = state.averages[recipe.sigma_rel].average

        # The images of a step are cut into parts, `accumulate` a process; the next ones are made in the background.
        parts = parts_of(recipe)
        size, mine = recipe.batch // parts, range(rank * recipe.accumulate, (rank + 1) * recipe.accumulate)
        starts = [recipe.batch * step + size * part for step in range(first, recipe.steps) for part in mine]
        data = zip(starts, ahead(lambda start: make(start, size), starts), strict=True)

        log = Log(folder, first) if rank == 0 else None
        since, totals = time.perf_counter(), torch.zeros(2, 4)
        with bar() as shown:
            task = shown.add_task("training", total=recipe.steps * recipe.batch, completed=first * recipe.batch)
            for step in range(first + 1, recipe.steps + 1):
                # Add up the gradient over this process's parts; the last one exchanges it with the other processes.
                step_totals = torch.zeros(2, 4, device=device)
                for part in mine:
                    with shared.no_sync() if shared and part != mine[-1] else nullcontext():
                        start, examples = next(data)
                        sources = [generator(recipe.seed, start + i, device) for i in range(size)]
                        objective, numbers = forward(shared or loss, examples, sources, recipe, layout)
                        (objective / recipe.accumulate).backward()
                        step_totals += numbers
                if ranks > 1:
                    dist.all_reduce(step_totals)

                # Stop before a number that is not finite reaches a weight or a checkpoint.
                size_of = torch.nn.utils.get_total_norm([w.grad for w in state.weights.values() if w.grad is not None])
                if not (math.isfinite(size_of) and bool(step_totals.isfinite().all())):
                    raise InputError(
                        f"the loss is not finite at step {step}; {folder} keeps its last good checkpoint; in a new one "
                        f"try a lower --lr than {recipe.lr:g}, a longer --warmup than {recipe.warmup} or no --bf16"
                    )

                # Update the weights, put them back on their spheres, and average.
                rate = learning_rate(recipe, step * recipe.batch)
                state.update(rate)
                renormalize(model)
                state.average(step)

                # Say how it goes.
                totals += step_totals.cpu()
                loss_now = float(step_totals[0, 0] / step_totals[1, 0])
                shown.update(task, completed=step * recipe.batch, description=f"training, loss {loss_now:.3f}")
                if log and (step % recipe.log_every == 0 or step == recipe.steps):
                    speed = totals[1, 0].item() / (time.perf_counter() - since)
                    log.write(
                        step, step * recipe.batch, totals, {"rate": rate, "gradient": float(size_of), "speed": speed}
                    )
                    since, totals = time.perf_counter(), torch.zeros(2, 4)

                # Keep what may be needed again, the checkpoint last: it stands for all that came before.
                if rank == 0:
                    for name, share in SNAPSHOTS.items():
                        if name != "final" and step == math.ceil(share * recipe.steps):
                            keep(name, average)
                    if step % recipe.average_every == 0:
                        half = {name: w.half() for name, w in state.averaged().items()}
                        checkpoint.save_tensors(folder / "averages" / f"{step:09d}.safetensors", half)
                    if step % recipe.sheet_every == 0 or step == recipe.steps:
                        draw(step, average)
                    if step % recipe.checkpoint_every == 0 or step == recipe.steps:
                        checkpoint.save(folder / "checkpoints", step, state.tensors())
        if log:
            keep("final", average)
            log.close()
