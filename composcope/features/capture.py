"""What happens inside a network: activations by the names of its modules; hooks only look.

    with capture(network, ["enc.32x32_block0"], keep): network(...)     calls keep(name, activation)

The hooks are gone when the block is left, however it is left. `Means` keeps sums and not samples,
so what is remembered does not grow with samples or steps."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from composcope.errors import InputError

# A module's call: itself, its arguments by place and by name, its result.
Read = Callable[[nn.Module, tuple, dict, Any], Tensor]
Keep = Callable[[str, Tensor], None]


def output(module: nn.Module, args: tuple, named: dict, result: Any) -> Tensor:
    return result


def first_input(module: nn.Module, args: tuple, named: dict, result: Any) -> Tensor:
    return args[0]


@contextmanager
def capture(
    network: nn.Module, layers: Sequence[str], keep: Keep, read: Read = output
) -> Iterator[None]:
    """Hand what `read` sees of each call of the named modules to `keep`."""
    modules = dict(network.named_modules())
    if unknown := [name for name in layers if name not in modules]:
        some = ", ".join(list(modules)[1:6])
        raise InputError(f"the network has no module {unknown[0]!r}; it has {some}, ...")

    def hook(name: str) -> Callable:
        return lambda *call: keep(name, read(*call).detach())

    with ExitStack() as handles:
        for name in layers:
            handle = modules[name].register_forward_hook(hook(name), with_kwargs=True)
            handles.callback(handle.remove)
        yield


class Means:
    """Means over samples, kept as sums in single precision: one tensor a key."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}
        self.counts: dict[str, int] = {}

    def add(self, key: str, samples: Float[Tensor, "batch ..."]) -> None:
        total = samples.float().sum(0)
        self.sums[key] = self.sums[key].add_(total) if key in self.sums else total
        self.counts[key] = self.counts.get(key, 0) + len(samples)

    def __call__(self) -> dict[str, Tensor]:
        return {key: total / self.counts[key] for key, total in self.sums.items()}


def as_map(activation: Tensor) -> Float[Tensor, "batch channel height width"]:
    """As a map: [batch, places, channel] of a transformer on a square image becomes one."""
    if activation.ndim == 3:
        side = round(activation.shape[1] ** 0.5)
        if side**2 != activation.shape[1]:
            raise InputError(f"{activation.shape[1]} places are not those of a square image")
        return activation.mT.unflatten(2, (side, side))
    return activation


def pooled(activation: Tensor, grid: int) -> Float[Tensor, "batch channel height width"]:
    """At most grid x grid places: finer maps are averaged."""
    found = as_map(activation).float()
    return F.adaptive_avg_pool2d(found, grid) if found.shape[-1] > grid else found
