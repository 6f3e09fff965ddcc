"""What is claimed of the exact toys, and what was predicted for each before it was measured."""

from collections.abc import Mapping

from composcope.results import Estimate
from composcope.theory.claim import Claim, Rule

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


def judged(measured: Mapping[str, float | Estimate]) -> list[Claim]:
    """The claims of these names, with what was measured for them."""
    claims = []
    for name, value in measured.items():
        says, predicted, tolerance, rule = PREDICTIONS[name]
        claims.append(Claim(name, says, predicted, value, tolerance, rule))
    return claims
