"""What a claim is: measured on an exact toy, compared with what was predicted for it.

    claim | predicted | measured | holds        holds: measured =, <= or >= predicted, within a tolerance set beforehand

A study measures claims that belong together and keeps the curves its figure is drawn from.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from scipy.stats import binomtest
from torch import Tensor

Rule = Literal["=", "<=", ">="]


@dataclass(frozen=True)
class Claim:
    name: str
    says: str  # in one line, with its source
    predicted: float
    measured: float
    tolerance: float = 0.0
    rule: Rule = "="
    low: float | None = None  # 95 % interval of what was measured
    high: float | None = None

    @property
    def holds(self) -> bool:
        """Equality asks whether the interval reaches what was predicted; the inequalities judge the value itself."""
        if self.rule == "=":
            low, high = (self.measured if at is None else at for at in (self.low, self.high))
            return low <= self.predicted + self.tolerance and high >= self.predicted - self.tolerance
        gap = self.measured - self.predicted
        return gap <= self.tolerance if self.rule == "<=" else gap >= -self.tolerance


@dataclass(frozen=True)
class Study:
    claims: list[Claim]
    curves: dict[str, Any] = field(default_factory=dict)


def frequency(name: str, says: str, predicted: float, hits: Tensor, rule: Rule = "=") -> Claim:
    """A share of trials with its Wilson interval."""
    ends = binomtest(int(hits.sum()), len(hits)).proportion_ci(method="wilson")
    return Claim(name, says, predicted, hits.double().mean().item(), 0.0, rule, float(ends.low), float(ends.high))


def average(name: str, says: str, predicted: float, values: Tensor, tolerance: float, rule: Rule = "=") -> Claim:
    """A mean over samples with its normal interval."""
    mean, half = values.double().mean().item(), 1.96 * values.double().std().item() / len(values) ** 0.5
    return Claim(name, says, predicted, mean, tolerance, rule, mean - half, mean + half)
