"""Every claim is measured, and comes out as the report says: those listed here fail, all others hold."""

import json
import re
import subprocess
import sys

import pytest

from composcope.report.page import SIM, THEORY
from composcope.theory.claim import Claim

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
    "failure/psd",
}


@pytest.mark.parametrize("command", ["theory", "sim"])
def test_every_claim_comes_out_as_reported(command, tmp_path):
    """In a process of its own: its loops of many thousand steps are slow with every call's shapes checked."""
    words = [sys.executable, "-m", "composcope", command, "--json", "--out", str(tmp_path / "rows.jsonl")]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in printed.splitlines()]
    assert len(rows) > 10
    wrong = {row["claim"]: row["value"] for row in rows if row["setting"]["holds"] == (row["claim"] in FAIL)}
    assert not wrong
    assert all(re.match(f"{THEORY}|{SIM}", row["claim"]) for row in rows)  # the report shows each
    assert list(tmp_path.glob(f"{command}_*.png"))


def test_what_holding_means():
    def claim(rule, measured, low=None, high=None):
        return Claim("", "", 1.0, measured, 0.1, rule, low, high).holds

    assert claim("=", 1.05) and not claim("=", 1.2) and claim("=", 1.2, 1.05, 1.3) and not claim("=", 0.5, 0.4, 0.8)
    assert claim("<=", 1.05) and not claim("<=", 1.2, 0.5, 2.0) and claim(">=", 0.95) and not claim(">=", 0.8)
