"""Claim (Yang et al. 2025): of two concepts the one with more contrast is learned first, and more
contrast brings a concept forward; on the unseen combination accuracy need not rise all the way.

    python -m composcope.experiments.circles

Circles of two colours and two sizes, the blue small one never trained on, at three contrasts of the
colours and from three seeds: nine trainings of 250 steps, about 5 minutes of one core each, one
after the other. The same command goes on where it was stopped."""

from pathlib import Path

import torch

from composcope.experiments import command
from composcope.progress import track
from composcope.results import Row, add_rows
from composcope.theory.circles import circle_claims, circles

CONTRASTS = (0.2, 0.5, 0.8)
SEEDS = (0, 1, 2)


def main(
    contrasts: tuple[float, ...] = CONTRASTS,
    seeds: tuple[int, ...] = SEEDS,
    images: int = 16_000,
    draws: int = 32,
    work: Path = Path("runs/circles"),
    out: Path = Path("composcope/models/sim/circles.jsonl"),
) -> list[Row]:
    """Accuracies along every training, then the claims; rows of each when it is finished."""
    torch.set_num_threads(1)
    pairs = [(contrast, seed) for contrast in contrasts for seed in seeds]
    rows: list[Row] = []
    for contrast, seed in track(pairs, "trainings"):
        found = circles(contrast, images, seed, work / f"{contrast:g}-{images}-{seed}", draws)
        add_rows(out, found)
        rows += found
    claims = circle_claims(rows)
    add_rows(out, claims)
    for row in claims:
        print(f"{row.claim}: {row.estimate}, {'holds' if row.holds else 'does not hold'}")
    print(f"rows: {out}; composcope report shows them")
    return rows + claims


if __name__ == "__main__":
    command(main)
