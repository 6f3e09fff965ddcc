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


# Predicted for the exact toys before anything was measured.
# name: what is claimed; the value predicted; tolerance; rule
# fmt: off
PREDICTIONS: dict[str, tuple[str, float, float, Rule]] = {
    "lemma1/cpc_to_lcs":
        ("Lemma 1: the LCS is the score of a CPC, p(.|0) factorised", 0, 1e-10, "="),
    "lemma1/lcs_to_cpc":     ("converse: an LCS integrates to a CPC", 0, 1e-9, "="),
    "lemma1/as_printed":     ("Lemma 1 for every CPC of Definition 2, as printed", 0, 1e-10, "="),
    "lemma1/length":
        ("K = 0..9 objects at the places asked for, after pairs only", 1.0, 0.0, "="),
    "lemma2/bound":
        ("Lemma 2: KL(truth || LCS) / bound, largest (+3 std. err.)", 1, 0, "<="),
    "lemma2/order":          ("our prediction: the KL grows as epsilon^2", 2, 0.1, "="),
    "definition3/finite":
        ("errors stay finite for correlated Gaussians (growth in y)", 0, 0.01, "="),
    "lemma3/decreasing":     ("Lemma 3: largest step up of its sup-KL", 0, 0, "<="),
    "lemma3/repaired":       ("Lemma 3 in Definition 3's order of the KL", 0, 0, "<="),
    "lemma3/same_order":     ("both orders are one quantity (ratio, noise 0)", 1, 0.01, "="),
    "claim1/derivative":
        ("Claim 1: formula against finite differences (relative)", 0, 1e-5, "="),
    "corollary1/f_lcs":      ("Corollary 1: F-LCS = score of A#p", 0, 1e-9, "="),
    "feature/turned":        ("orthogonal A: pixel score through A^T", 0, 1e-9, "="),
    "feature/sheared":       ("other A: the same is off by", 0.1, 0, ">="),
    "feature/commutes":      ("orthogonal A commutes with noise (KL)", 0, 1e-10, "="),
    "claim2/decreasing":     ("Claim 2: largest step up of the KL, A(x) = 2x", 0, 0, "<="),
    "claim2/limit":          ("our closed form for A(x) = 2x: KL at t = 50", 0.318, 5e-4, "="),
    "sectionD/orthogonal":   ("orthogonal A: A^t = A", 0, 1e-9, "="),
    "sectionD/sampler":      ("sampling through A^t ends where p's own flow does", 0, 0.02, "="),
    "sectionD/fixed":        ("the same with A at every noise level is off by", 0.1, 0, ">="),
    "equation3/necessary":   ("CPC: largest |cosine| between mu_i - mu_b", 0, 1e-10, "="),
    "equation3/not_sufficient": ("cosines 0, not a CPC: LCS is off by", 0.1, 0, ">="),
    "projective/empty":      ("composed scores, empty background: asked objects at", 1, 0.05, "="),
    "projective/empty_rest": ("the same: objects not asked for at", 0, 0.05, "="),
    "projective/bayes":      ("Bayes background is wrong: asked objects below", 0.75, 0, "<="),
    "projective/clutter":    ("independent clutter: asked objects at", 1, 0.05, "="),
    "projective/crowd":      ("1-5 objects as background: asked objects at", 1, 0.1, "="),
    "machine/local_conditional": ("trained on 1-2, draws 0..16 as asked", 1.0, 0.0, "="),
    "machine/ideal":         ("global: distance to the nearest training image", 0, 0.02, "="),
    "machine/ideal_count":   ("global: most objects ever drawn", 2, 0.0, "="),
}
# fmt: on


def judged_claims(measured: Mapping[str, float | Estimate]) -> list[Claim]:
    """The claims of these names, with what was measured for them."""
    claims = []
    for name, value in measured.items():
        says, predicted, tolerance, rule = PREDICTIONS[name]
        claims.append(Claim(name, says, predicted, value, tolerance, rule))
    return claims
