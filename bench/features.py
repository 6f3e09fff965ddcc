"""Whether looking costs memory: activations of every modulated layer over 100 samples, kept as
running means."""

import resource
import time

import torch

from composcope.features.capture import Means, capture, first_input
from composcope.features.means import modulated_layers
from composcope.nets.unet import UNet

SAMPLES = 100


def resident() -> float:
    """The most memory this process ever held, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@torch.no_grad()
def rows() -> list[tuple[str, str, str]]:
    small = {"model_channels": 32, "channel_mult": (1, 2), "num_blocks": 1}
    net = UNet(32, features=8, **small, attn_resolutions=(), channels_per_head=32)
    layers, kept, peaks, seconds = modulated_layers(net), Means(), [], {True: 0.0, False: 0.0}
    for sample in range(SAMPLES):
        x = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(sample))
        for looking in (False, True):
            began = time.perf_counter()
            with capture(net, layers if looking else (), kept.add, first_input):
                net(x, torch.zeros(1), torch.eye(8)[:1])
            seconds[looking] += time.perf_counter() - began
        peaks.append(resident())
    size = sum(total.numel() * 4 for total in kept.sums.values()) / 2**20
    growth, all_kept = peaks[-1] - peaks[SAMPLES // 10], size * SAMPLES
    cost = seconds[True] / seconds[False]
    samples = f"samples {SAMPLES // 10 + 1} to {SAMPLES}, {len(layers)} layers"
    instead = f"0 is flat; keeping the samples would take {all_kept:.0f} MiB"
    return [
        (f"features: peak memory added by {samples}", f"{growth:.1f} MiB", instead),
        ("features: time of a call with hooks / without", f"{cost:.2f}", "1 is free"),
    ]
