"""How near the networks come to this machine's matrix products, and what the patch-local one saves
on a plain loop."""

import math
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch.utils.flop_counter import FlopCounterMode

from composcope.nets import LocalUNet, UNet
from composcope.runs.config import configure
from composcope.runs.model import conditioner_of, network

Row = tuple[str, str, str]


def attention(q: Sequence[int], k: Sequence[int], *_: object, **__: object) -> int:
    """Two products of `tokens x channels` with their transposes, a multiplication and an addition
    each."""
    return 4 * math.prod(q) * k[-2]


def attention_backward(
    _: Sequence[int], q: Sequence[int], k: Sequence[int], *__: object, **___: object
) -> int:
    return 2 * attention(q, k)


def operations(run: Callable[[], object]) -> int:
    """Those of all convolutions and products, attention's too, which the counter does not know on
    CPUs."""
    aten = torch.ops.aten
    known = {
        aten._scaled_dot_product_flash_attention_for_cpu: attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
    }
    with FlopCounterMode(display=False, custom_mapping=known) as counter:
        run()
    return counter.get_total_flops()


def medians(
    tasks: list[Callable[[], object]], clock: Callable[[], float], rounds: int
) -> list[float]:
    """Median seconds of each task; they take turns, so that what else the machine does meets all of
    them."""
    seconds: list[list[float]] = [[] for _ in tasks]
    for task in tasks:
        task()
    for _ in range(rounds):
        for taken, task in zip(seconds, tasks, strict=True):
            start = clock()
            task()
            taken.append(clock() - start)
    return [statistics.median(taken) for taken in seconds]


def product() -> tuple[Callable[[], object], float]:
    """A matrix product and its operations: the rate nothing exceeds by much."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return lambda: a @ b, 2 * 1024**3


def step(net: UNet, batch: int) -> tuple[Callable[[], None], float]:
    """Forward and backward of a batch, and the operations in its convolutions and products."""
    x, noise_label = torch.randn(batch, 3, net.resolution, net.resolution), torch.randn(batch)
    cond = torch.eye(net.features)[torch.arange(batch) % net.features]

    def run() -> None:
        net.zero_grad()
        net(x, noise_label, cond).square().mean().backward()

    return run, operations(run)


def laptop() -> tuple[UNet, LocalUNet]:
    """The two networks of the laptop preset, past the first step, where their outputs are not all
    zero."""
    torch.manual_seed(0)
    configs = [configure(name, "laptop") for name in ("exp1", "exp2l")]
    whole, local = (network(config, conditioner_of(config)) for config in configs)
    assert isinstance(whole, UNet)
    assert isinstance(local, LocalUNet)
    torch.nn.init.ones_(whole.out_gain)
    torch.nn.init.ones_(local.unet.out_gain)
    return whole, local


def loop(
    net: LocalUNet, x: torch.Tensor, noise_label: torch.Tensor, cond: torch.Tensor
) -> torch.Tensor:
    """The patch-local model as appendix E.3 tells it: one call of the network for each cell."""
    p, image = net.patches, torch.arange(len(x))
    first, m = p.k * p.cell, p.cell
    rows = []
    for i in range(p.grid_size):
        row = []
        for j in range(p.grid_size):
            cell = torch.tensor([[i, j]]).expand(len(x), 2)
            F_x = net.unet(p.pixels(x, image, cell), noise_label, p.conditions(cond, image, cell))
            row.append(F_x[:, :, first : first + m, first : first + m])
        rows.append(torch.cat(row, 3))
    return torch.cat(rows, 2)


def rate_rows() -> list[Row]:
    """One thread, in processor seconds: the share of the peak does not depend on who else is at
    work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    whole, local = laptop()
    tasks = [product(), step(whole, 64), step(local.unet, 128)]
    seconds = medians([task for task, _ in tasks], time.process_time, 7)
    torch.set_num_threads(threads)
    peak, *rates = (
        operations / taken / 1e9 for (_, operations), taken in zip(tasks, seconds, strict=True)
    )
    names = ("laptop global, batch 64", "laptop local, 128 patches")
    table = [("matrix product, one thread", f"{peak:.0f} GFLOP/s", "the peak")]
    for name, rate, floor in zip(names, rates, ("at least 55 %", ""), strict=True):
        speed = f"{rate:.0f} GFLOP/s, {rate / peak:.0%} of the peak"
        table.append((f"forward and backward, {name}", speed, floor))
    return table


@torch.no_grad()
def local_rows() -> list[Row]:
    _, net = laptop()
    cells = net.patches.grid_size
    side = cells * net.patches.cell
    x, noise_label = torch.randn(8, 3, side, side), torch.randn(8)
    cond = (torch.rand(8, cells**2) < 0.02).float()
    gap = (net(x, noise_label, cond) - loop(net, x, noise_label, cond)).abs().max().item()
    ways = [lambda: net(x, noise_label, cond), lambda: loop(net, x, noise_label, cond)]
    ours, plain = medians(ways, time.perf_counter, 5)
    rate = operations(lambda: net(x, noise_label, cond)) / ours / 1e9
    speed = f"{ours * 1e3:.0f} ms, {plain / ours:.1f} x the plain loop over cells"
    remark = f"at least 2 x; equal to {gap:.0e}; bound by convolutions, {rate:.0f} GFLOP/s"
    return [(f"patch-local, 8 images of {side}x{side}, all cells at once", speed, remark)]


def rows() -> list[Row]:
    return rate_rows() + local_rows()
