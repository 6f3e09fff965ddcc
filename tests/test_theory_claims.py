"""Every claim is measured, and comes out as the report says: those listed here fail, all others hold."""

import pytest

from composcope.theory import claims, swing_by

FAIL = {
    "lemma1/as_printed",  # needs p(. | nothing) to factorise
    "definition3/finite",
    "lemma3/same_order",
    "claim2/decreasing",
    "projective/crowd",
    "sim/clock",
    "sim/order/mu/relu_usual_start",
    "sim/order/sigma/relu",
    "sim/order/sigma/relu_usual_start",
    "swing_by/tied/figure_5",
    "swing_by/tied/gaussian",
    "swing_by/isotropic/2",
    "swing_by/isotropic/8",
    "swing_by/relu/isotropic",
    "swing_by/depth_3",
    "swing_by/depth_4",
    "failure/descent",
    "failure/psd",
}
STUDIES = {**claims.STUDIES, **swing_by.STUDIES}


@pytest.mark.parametrize("name", STUDIES)
def test_every_claim_comes_out_as_reported(name):
    for claim in STUDIES[name]().claims:
        assert claim.holds == (claim.name not in FAIL), claim


def test_what_holding_means():
    def claim(rule, measured, low=None, high=None):
        return claims.Claim("", "", 1.0, measured, 0.1, rule, low, high).holds

    assert claim("=", 1.05) and not claim("=", 1.2) and claim("=", 1.2, 1.05, 1.3) and not claim("=", 0.5, 0.4, 0.8)
    assert claim("<=", 1.05) and not claim("<=", 1.2, 0.5, 2.0) and claim(">=", 0.95) and not claim(">=", 0.8)
