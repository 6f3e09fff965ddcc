"""A training in a process of its own, forked from one that has imported what it needs: a new Python
would import torch for seconds before its first step."""

import os
import resource
import signal
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import composcope.diffusion.train as steps
import composcope.runs.data as data
from composcope.diffusion.recipe import Recipe
from composcope.errors import sentences
from composcope.runs.config import configure
from composcope.runs.training import start
from tests.faults.kills import SERVER

SAID = "said.txt"  # beside the folder of the run: what the process said on standard error


class Training:
    """Its process, which tells each step before the update."""

    def __init__(self, folder: Path, changes: dict, limit: int = 0) -> None:
        self.said_at = folder.parent / f"{folder.name}-{SAID}"
        self.told, teller = SERVER.Pipe(duplex=False)
        words = (folder, changes, teller, self.said_at, limit)
        self.process: BaseProcess = SERVER.Process(target=train, args=words)
        self.process.start()
        teller.close()

    def reach(self, step: int) -> None:
        try:
            while self.told.recv() < step:
                pass
        except EOFError:
            raise AssertionError(self.said()) from None

    def ended(self) -> int:
        self.process.join()
        assert self.process.exitcode is not None
        return self.process.exitcode

    def said(self) -> str:
        return self.said_at.read_text()


def train(folder: Path, changes: dict, teller: Connection, said: Path, limit: int) -> None:
    """`limit`: how large files may become, in bytes; 0 for any size."""
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    data.MEASURED = 256
    rate = steps.learning_rate

    def told(recipe: Recipe, t: int) -> float:
        teller.send(t // recipe.batch)
        return rate(recipe, t)

    steps.learning_rate = told
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    with sentences():
        start(configure("exp2l", "smoke", changes), folder)
