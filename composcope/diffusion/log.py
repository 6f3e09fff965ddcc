"""What a training run says of itself: one JSON line an interval, the same numbers as TensorBoard scalars.

band(sigma) = low, middle or high: ln sigma more than a deviation below the mean of the noise distribution, near, above
"""

import json
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from composcope.diffusion.loss import Noise
from composcope.files import write_text

NAMES = ("loss", "error/low", "error/middle", "error/high")


def sums(
    objective: Float[Tensor, " n"], error: Float[Tensor, " n"], sigma: Float[Tensor, " n"], noise: Noise
) -> Float[Tensor, "2 4"]:
    """Sums and counts of the numbers of NAMES; these add up over parts and processes."""
    z = (sigma.log() - noise.P_mean) / noise.P_std
    member = torch.stack([z < -1, z.abs() <= 1, z > 1]).to(error)
    total, count = objective.detach().sum()[None], torch.full_like(error[:1], len(error))
    return torch.stack([torch.cat([total, member @ error]), torch.cat([count, member.sum(1)])])


class Log:
    """Lines of log.jsonl up to `step`, where the run goes on; what follows is written again, the same."""

    def __init__(self, folder: Path, step: int):
        self.path = folder / "log.jsonl"
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True) if self.path.exists() else []
        write_text(self.path, "".join(line for line in lines if whole_line(line) and json.loads(line)["step"] <= step))
        self.board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def write(self, step: int, images: int, totals: Float[Tensor, "2 4"], extra: dict[str, float]) -> None:
        means = {name: total / n for name, total, n in zip(NAMES, *totals.tolist(), strict=True) if n} | extra
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, "images": images, **means}) + "\n")
        for name, mean in means.items():
            self.board.add_scalar(name, mean, step)

    def close(self) -> None:
        self.board.close()


def whole_line(line: str) -> bool:
    """False for a line that was cut short when its writer was killed."""
    try:
        return line.endswith("\n") and "step" in json.loads(line)
    except ValueError:
        return False
