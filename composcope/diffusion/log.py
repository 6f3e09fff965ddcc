"""What a training run says of itself: a JSON line an interval, and the same for TensorBoard.

band(sigma) = low, middle or high: ln sigma below the mean by more than a deviation, near, above"""

import json
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from composcope.diffusion.loss import Noise
from composcope.errors import InputError
from composcope.files import naming, parse_json, write_text

NAMES = ("loss", "error/low", "error/middle", "error/high")
Numbers = Float[Tensor, " n"]
Sums = Float[Tensor, "2 4"]


def sums(objective: Numbers, error: Numbers, sigma: Numbers, noise: Noise) -> Sums:
    """Sums and counts of the numbers of NAMES; these add up over parts and processes."""
    z = (sigma.log() - noise.P_mean) / noise.P_std
    member = torch.stack([z < -1, z.abs() <= 1, z > 1]).to(error)
    total, count = objective.detach().sum()[None], torch.full_like(error[:1], len(error))
    return torch.stack([torch.cat([total, member @ error]), torch.cat([count, member.sum(1)])])


class Log:
    """Lines of log.jsonl up to `step`, from where the run goes on and writes the same again.

    Of several processes only the one that `writes` does."""

    def __init__(self, folder: Path, step: int, writes: bool = True):
        self.folder = folder
        self.path = folder / "log.jsonl"
        self.step = step
        self.writes = writes

    def __enter__(self) -> "Log":
        if self.writes:
            lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
            kept = [line for line in lines if 0 <= step_of(line) <= self.step]
            write_text(self.path, b"".join(kept).decode())
            self.board = SummaryWriter(str(self.folder / "tensorboard"), purge_step=self.step + 1)
        return self

    def __exit__(self, *_: object) -> None:
        if self.writes:
            self.board.close()

    def write(self, step: int, images: int, totals: Sums, extra: dict[str, float]) -> None:
        """One line: the means of what was added up by `sums`, and `extra`."""
        if not self.writes:
            return
        numbers = zip(NAMES, *totals.tolist(), strict=True)
        means = {name: total / n for name, total, n in numbers if n} | extra
        with naming(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, "images": images, **means}) + "\n")
        for name, mean in means.items():
            self.board.add_scalar(name, mean, step)


def step_of(line: bytes) -> int:
    """The step of a line of the log; -1 of one that a killed writer cut short, or is not ours."""
    if not line.endswith(b"\n"):
        return -1
    try:
        return int(parse_json(line, dict[str, int | float], "log.jsonl").get("step", -1))
    except InputError:
        return -1
