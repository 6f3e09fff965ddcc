"""What a claim is: measured on an exact toy, compared with what was predicted for it.

    claim | predicted | measured | holds
    holds: measured =, <= or >= predicted, within a tolerance set beforehand

A toy measures claims that belong together and keeps the curves its figure is drawn from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from composcope.results import Estimate, Row, mean, row
from composcope.results.arrays import write_arrays

Rule = Literal["=", "<=", ">="]
ROUND_OFF = 1e-9  # the ends of an interval are computed, and what was predicted may be just there


@dataclass(frozen=True)
class Claim:
    name: str
    says: str  # in one line, with its source
    predicted: float
    measured: float | Estimate
    tolerance: float = 0.0
    rule: Rule = "="

    @property
    def estimate(self) -> Estimate:
        return self.measured if isinstance(self.measured, Estimate) else Estimate(self.measured)

    @property
    def holds(self) -> bool:
        """Equality asks whether the interval reaches it; inequalities judge the value itself."""
        value, low, high = self.estimate.value, self.estimate.low, self.estimate.high
        if self.rule == "=":
            slack = self.tolerance + (ROUND_OFF if low is not None else 0.0)
            lowest, highest = (value if end is None else end for end in (low, high))
            return lowest <= self.predicted + slack and highest >= self.predicted - slack
        gap = value - self.predicted
        return gap <= self.tolerance if self.rule == "<=" else gap >= -self.tolerance

    def row(self, room: str, **coordinates: Any) -> Row:
        """Of what `room` measures: theory or sim."""
        judged = {"rule": self.rule, "holds": self.holds, "tolerance": float(self.tolerance)}
        about = {"claim": self.says, "predicted": float(self.predicted), **judged, **coordinates}
        return row(f"{room}/{self.name}", self.estimate, **about)


@dataclass(frozen=True)
class Toy:
    """Claims, and arrays by name: all that the toy's figure needs."""

    claims: list[Claim]
    curves: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """The curves, in single precision."""
        arrays = {name: np.asarray(values) for name, values in self.curves.items()}
        for name, array in arrays.items():
            arrays[name] = array.astype(np.float32) if array.dtype == np.float64 else array
        write_arrays(path, {"claims": [claim.name for claim in self.claims]}, arrays)


def frequency(name: str, says: str, predicted: float, hits: Tensor, rule: Rule = "=") -> Claim:
    """A share of trials with its Wilson interval."""
    return Claim(name, says, predicted, mean(hits.bool().numpy()), 0.0, rule)
