"""The training loop: all that is random about an image comes from (seed, its position) alone.

So a run stopped at any step goes on bit for bit, and more processes change round-off only."""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import numba
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from composcope.diffusion import checkpoint
from composcope.diffusion.checkpoint import State, Weights
from composcope.diffusion.lesson import Denoising, Lesson
from composcope.diffusion.log import Log
from composcope.diffusion.loss import Loss, generator
from composcope.diffusion.recipe import Recipe, layout, learning_rate
from composcope.errors import InputError, Stopped
from composcope.progress import bar
from composcope.signals import Stop
from composcope.tensors import save_tensors

T = TypeVar("T")
# shares of the training after which the average is kept
SNAPSHOTS = {"first": 0.125, "early": 0.25, "middle": 0.5, "final": 1.0}


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


def parts_of_batch(recipe: Recipe) -> int:
    """Of a batch, over all processes."""
    parts = int(os.environ.get("WORLD_SIZE", 1)) * recipe.accumulate
    if recipe.batch % parts:
        raise InputError(f"a batch of {recipe.batch} images cannot be cut into {parts} equal parts")
    return parts


@contextmanager
def processes() -> Iterator[int]:
    """The rank of this process: torchrun's, or 0. Inside, `dist` is ready where there are more."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield 0
        return
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield dist.get_rank()
    finally:
        dist.destroy_process_group()


def by_the_first(work: Callable[[], Any]) -> Any:
    """What `work` returns, done by the first process for all; what it refuses, all refuse."""
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
    state = State(model, recipe.optimizer, recipe.sigma_rels, recipe.muon_rate)
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
    size = recipe.batch // parts_of_batch(recipe)
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
        clock, clocked = time.perf_counter(), first
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
                speed = (step - clocked) * recipe.batch / (time.perf_counter() - clock)
                extra = {"rate": rate, "gradient": gradient_norm, "speed": speed}
                log.write(step, step * recipe.batch, totals, extra)
                clock, clocked = time.perf_counter(), step
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
