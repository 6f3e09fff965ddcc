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
        """Equality asks whether the interval reaches what was predicted; the inequalities judge the
        value itself."""
        value, low, high = self.estimate.value, self.estimate.low, self.estimate.high
        slack = self.tolerance + (ROUND_OFF if low is not None else 0.0)
        if self.rule == "=":
            reaches_down = (value if low is None else low) <= self.predicted + slack
            reaches_up = (value if high is None else high) >= self.predicted - slack
            return reaches_down and reaches_up
        gap = value - self.predicted
        return gap <= self.tolerance if self.rule == "<=" else gap >= -self.tolerance

    def row(self, room: str, **coordinates: Any) -> Row:
        """Of what `room` measures: theory or sim."""
        return row(
            f"{room}/{self.name}",
            self.estimate,
            claim=self.says,
            predicted=float(self.predicted),
            tolerance=float(self.tolerance),
            rule=self.rule,
            holds=self.holds,
            **coordinates,
        )


@dataclass(frozen=True)
class Toy:
    """Claims, and arrays by name: all that the toy's figure needs."""

    claims: list[Claim]
    curves: Mapping[str, Any] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """The curves, in single precision."""
        arrays = {name: np.asarray(values) for name, values in self.curves.items()}
        small = {
            name: a.astype(np.float32) if a.dtype == np.float64 else a for name, a in arrays.items()
        }
        write_arrays(path, {"claims": [claim.name for claim in self.claims]}, small)


def frequency(name: str, says: str, predicted: float, hits: Tensor, rule: Rule = "=") -> Claim:
    """A share of trials with its Wilson interval."""
    return Claim(name, says, predicted, mean(hits.bool().numpy()), 0.0, rule)


def average(
    name: str, says: str, predicted: float, values: Tensor, tolerance: float, rule: Rule = "="
) -> Claim:
    """A mean over samples with its bootstrap interval."""
    return Claim(name, says, predicted, mean(values.double().numpy()), tolerance, rule)
