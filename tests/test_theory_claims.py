"""Every claim is measured, and comes out as told here: those listed fail, all others hold. Figures
from what is kept."""

import json
import subprocess
import sys

import pytest

from composcope.report.theory import TOY_FIGURES, claims_table, toy_figures
from composcope.results import Estimate, read_rows
from composcope.runs.model import SHIPPED
from composcope.theory.claim import Claim
from composcope.theory.claims import THEORY
from composcope.theory.swing_by import SIM

FAIL = {
    "theory/lemma1/as_printed",  # needs p(. | nothing) to factorise
    "theory/definition3/finite",
    "theory/lemma3/same_order",
    "theory/claim2/decreasing",
    "theory/projective/crowd",
    "sim/clock",
    "sim/order/mu/relu_usual_start",
    "sim/order/sigma/relu",
    "sim/order/sigma/relu_usual_start",
    "sim/swing_by/tied/figure_5",
    "sim/swing_by/tied/gaussian",
    "sim/swing_by/isotropic/2",
    "sim/swing_by/isotropic/8",
    "sim/swing_by/relu/isotropic",
    "sim/swing_by/depth_3",
    "sim/swing_by/depth_4",
    "sim/failure/psd",
}


@pytest.mark.parametrize("command", ["theory", "sim"])
def test_every_claim_comes_out_as_reported(command, tmp_path):
    """In a process of its own: its loops of many thousand steps are slow with every call's shapes
    checked."""
    words = [sys.executable, "-m", "composcope", command, "--json"]
    words += ["--out", str(tmp_path / "rows.jsonl")]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in printed.splitlines()]
    assert len(rows) > 10
    wrong = {row["what"]: row["value"] for row in rows if row["holds"] == (row["what"] in FAIL)}
    assert not wrong
    assert {path.stem for path in (tmp_path / "rows").glob("*.png")} == set(TOY_FIGURES[command])
    shipped = {row.what: row.holds for row in read_rows(SHIPPED / command / "rows.jsonl")}
    # What ships is what is measured now.
    assert shipped == {row["what"]: row["holds"] for row in rows}


@pytest.mark.parametrize(("room", "toys"), [("theory", THEORY), ("sim", SIM)])
def test_the_figures_are_drawn_from_what_ships(room, toys, tmp_path):
    """Also beside a folder of one's own without curves, as `sim --circles` makes it."""
    found = list(toy_figures(room, [tmp_path, SHIPPED / room]))
    assert len(found) == len(TOY_FIGURES[room]) and set(TOY_FIGURES[room]) <= set(toys)
    for figure, words in found:
        assert words and all(axis.has_data() for axis in figure.axes)
    assert claims_table(read_rows(SHIPPED / room / "rows.jsonl")).row_count > 10


def test_what_holding_means():
    def claim(rule, measured, low=None, high=None):
        return Claim("", "", 1.0, Estimate(measured, low, high), 0.1, rule).holds

    assert claim("=", 1.05) and claim("=", 1.2, 1.05, 1.3)
    assert not claim("=", 1.2) and not claim("=", 0.5, 0.4, 0.8)
    assert claim("<=", 1.05) and not claim("<=", 1.2, 0.5, 2.0)
    assert claim(">=", 0.95) and not claim(">=", 0.8)


def test_a_claim_is_a_row():
    says, measured = "Lemma 9: nothing", Estimate(0.7, 0.6, 0.8, 40)
    row = Claim("lemma9", says, 0.5, measured, 0.05, ">=").row("theory", seed=3)
    assert (row.what, row.claim, row.seed) == ("theory/lemma9", says, 3)
    assert (row.predicted, row.tolerance, row.rule, row.holds) == (0.5, 0.05, ">=", True)
    assert (row.value, row.low, row.high, row.n) == (0.7, 0.6, 0.8, 40)
