"""Claim (Figures 1, 4; section E.3): a patch-local network composes where the global one failed, even from one object.

    python -m composcope.experiments.local_intervention --preset laptop

Beside it what the paper does not have: the failing model with local conditions, or composed, at sampling time.
"""

from pathlib import Path

import tyro

from composcope.results import Row
from composcope.study.plan import measured

RUNS = "exp2,exp2l,exp3l,exp1-one,exp2l-one,exp2l-wide,exp2l-wide-one"
PAIRS = (  # (repaired, failing): what the intervention gains
    ("exp2l", "exp2"),
    ("exp2+local", "exp2"),
    ("exp2+composed", "exp2"),
    ("exp2l-one", "exp1-one"),
    ("exp2l", "exp2l-wide"),  # patches as wide as the image: must fail like exp2
    ("exp2l-one", "exp2l-wide-one"),
)


def main(preset: str = "laptop", out: Path = Path("study"), num: int = 24, runs: str = RUNS) -> list[Row]:
    """K_max of each pair, and the difference."""
    rows = [row for row in measured(preset, out, runs, num) if row.claim == "length/k_max_paper"]
    ours = (row for row in rows if row.setting.get("snapshot") == "final")
    final = {row.run.partition(" within ")[0]: row for row in ours}  # at the common tolerance, where judged at both
    for repaired, failing in PAIRS:
        if repaired in final and failing in final:
            pair = (final[repaired], final[failing])
            print("   ".join(f"{row.run:12} {row.value} [{row.low:.0f}, {row.high:.0f}]" for row in pair))
    return rows


if __name__ == "__main__":
    tyro.cli(main)
