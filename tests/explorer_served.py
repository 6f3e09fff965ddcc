"""The real explorer, as tests use it: the command in a process of its own, on a free port."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

WAIT = 120.0  # seconds until a test is called hung


@dataclass(frozen=True)
class Served:
    address: str  # http://127.0.0.1:port
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text()


@contextmanager
def served(folder: Path, runs: Sequence[str], *options: str) -> Iterator[Served]:
    """Started when the line with its address is there, ended with an interrupt."""
    log = folder / "explore.log"
    command = [sys.executable, "-m", "composcope", "explore", *runs, "--port", "0", *options]
    with open(log, "w") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            address = next(
                (found for line in lines if (found := re.search(r"http://\S+", line))), None
            )
            assert address, log.read_text()
            yield Served(address.group().rstrip("/"), log)
        finally:
            process.terminate()
            process.communicate(timeout=WAIT)
