"""Images rendered ahead by worker processes, the same by any number of them."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from composcope.diffusion.train import use
from composcope.runs.config import Config
from composcope.runs.data import Images, images_of
from composcope.scenes.condition import add_outside

Arrays = tuple[np.ndarray, np.ndarray | None]

source: Images  # of a worker process
# A child forked from here would inherit the threads' locks. It is forked from a process that has
# imported this once for all workers and does nothing else.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([__name__])


@contextmanager
def render_ahead(config: Config, images: Images, workers: int) -> Iterator[Images]:
    """`images`, made by so many processes of a core each; for none, by the caller's own threads."""
    if not workers:
        yield images
        return
    with ProcessPoolExecutor(workers, SERVER, begin_worker, (config,)) as pool:

        def ahead(start: int, count: int) -> tuple[Tensor, Tensor | None]:
            shown, cond = pool.submit(render_part, start, count).result()
            return torch.from_numpy(shown), None if cond is None else torch.from_numpy(cond)

        yield ahead


def begin_worker(config: Config) -> None:
    """What a worker process does first."""
    global source
    use(1, 1)
    if ":" in config.conditioner:
        add_outside(config.conditioner)  # `images` were made with it: a user has named it
    source = images_of(config)


def render_part(start: int, count: int) -> Arrays:
    shown, cond = source(start, count)
    return shown.numpy(), None if cond is None else cond.numpy()
