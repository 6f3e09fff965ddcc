"""The report says what the rows say, and does not know the result beforehand."""

import re
from dataclasses import replace

import pytest

from composcope.report.findings import claims, failures
from composcope.report.label_words import policies, single
from composcope.report.marks import in_percent, paper_of, two, verdict, with_interval
from composcope.report.material import Material, material, merge_rows, one
from composcope.report.section_figures import GROWING
from composcope.report.sections import SECTIONS
from composcope.report.tried import TRIED
from composcope.report.words import (
    composes,
    elsewhere,
    facts,
    forced,
    grows,
    headline,
    looks,
    sure,
    theory,
    two_places,
)
from composcope.results import Row, gather, where
from composcope.runs.model import SHIPPED
from composcope.study.effects import EFFECTS, Side, at_equal_images
from composcope.study.paper import PaperValue, v1, v3
from composcope.study.table import BY_NAME, LOCAL

MODEL = {"snapshot": "final", "trained": 3, "asked": "paper"}
MODEL |= {"steps": 12, "seed": 0, "images": 1000}


def found(run, value, K=9, half=0.2, **more):
    ends = {"low": value - half, "high": value + half, "n": 48}
    return Row("length/found", value, run=run, K=K, tolerance=0.1, **ends, **{**MODEL, **more})


def k_max(run, value, low, high, **more):
    more = {**MODEL, "tolerance": 0.1, "max_K": 12, "rule": "paper", **more}
    return Row("length/k_max", value, low=low, high=high, n=48, run=run, **more)


def local(run, value):
    ends = {"low": value - 0.02, "high": value + 0.02, "n": 16, "chance": 0.14}
    ends |= {"states": "trajectory", "K": 4}
    more = {name: MODEL[name] for name in ("snapshot", "trained", "asked", "seed", "images")}
    return Row("locality/conditional_locality", value, run=run, **ends, **more)


WITH_LOCAL = {"intervention": LOCAL.name, "radius": LOCAL.radius}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (8.26, "8.3"),
        (0.8333, "0.83"),
        (9.0, "9"),
        (1 - 1e-16, "1"),
        (0.996, "1.0"),
        (9.96, "10"),
        (0.0, "0"),
        (-0.084, "-0.084"),
        (12, "12"),
        (1234.5, "1,234"),
        (0.053, "0.053"),
        (2e-5, "2.0e-05"),
        (float("nan"), "nan"),
    ],
)
def test_two_significant_digits(value, words):
    assert two(value) == words


@pytest.mark.parametrize("run", ["exp2-penalty", "exp3-penalty", "exp2l-wide"])
def test_the_paper_has_no_number_of_what_it_did_not_train(run):
    assert not paper_of(Side(run)) and paper_of(Side("exp2"))


@pytest.mark.parametrize(
    ("row", "paper", "mark"),
    [
        (k_max("exp1", 7, 6, 8), (v1(9), v3(7)), "✓"),
        (k_max("exp1", 5, 4, 6), (v1(9), v3(7)), "▼"),
        (k_max("exp2", 4, 3, 4), (v1(1, extras=(0, 2)), v3(2)), "▲"),
        (k_max("exp1", 3, 3, 3, max_K=3), (v1(9), v3(7)), "…"),
        (k_max("exp1", 8, 8, 8), (v1(9), v3(7)), "✗"),
        (k_max("exp1", 4, 3, 4), (), "·"),
        (k_max("exp1", 2, 2, 2), (PaperValue(0, 3),), "✓"),
        (None, (v1(9),), "–"),
    ],
)
def test_agreement_is_computed(row, paper, mark):
    assert verdict(row, paper).mark == mark


def test_the_headline_follows_the_rows():
    composing = [found("exp1", 8.0), found("exp2", 1.5)]
    assert "not measured" in headline([])
    assert "draws more of them than" in headline(composing)
    seen = [*composing, local("exp1", 0.9), local("exp2", 0.2)]
    assert "and its pixels respond more to what is asked for near them" in headline(seen)
    other = [*composing, local("exp1", 0.1), local("exp2", 0.2)]
    assert "but its pixels do not respond more" in headline(other)
    assert "draws no more of them than" in headline([found("exp1", 1.5), found("exp2", 8.0)])
    assert "the second draws more too" in headline([*seen, found("exp2", 7.0, **WITH_LOCAL)])
    assert "the second draws no more" in headline([*seen, found("exp2", 1.0, **WITH_LOCAL)])
    assert headline([*seen, found("exp2", 7.0, **WITH_LOCAL)]).count(".") == 1


def test_three_facts_with_one_number_each():
    rows = [found("exp1", 8.04), found("exp2", 1.5)]
    assert [number for number, _ in facts(rows)] == ["8.0", "1.5", "–"]
    assert facts(rows)[2][1].startswith("Not measured")


def test_answers_name_what_is_not_measured():
    rows = [found("exp1", 8.0), found("exp2", 1.5), found("drop-one", 4.0)]
    assert "(not measured: random)." in policies(rows) and "order" not in policies(rows)
    assert "one label, in the paper's order." in policies([*rows, found("random", 6.0)])
    assert "models trained on 4,000 images each fill 8 " in policies(
        [replace(row, images=4000) for row in rows]
    )
    assert "each" not in policies([replace(rows[0], images=4000), *rows[1:]])
    assert "order is all labels, a random number" in policies([*rows, found("random", 3.0)])
    unknown = "exp2 + local conditions, exp2 + guided local conditions, exp2-student, "
    unknown += "exp2l, exp2l-wide"
    assert f"1.5 [1.3, 1.7] with one label (exp2) (not measured: {unknown})." in forced(rows)
    assert "fail again" in forced([*rows, found("exp2l", 8.0), found("exp2l-wide", 2.0)])
    single = replace(found("exp2l-wide", 0.1, K=1), what="length/complete")
    wide = [found("exp2l", 8.0), found("exp2l-wide", 2.0), single]
    assert "fail at one place already (10 [-10, 30] % of images have it)" in forced([*rows, *wide])
    assert "do as well" in forced([*rows, found("exp2l", 2.0), found("exp2l-wide", 2.0)])
    agree = composes([k_max("exp1", 7, 6, 8)], [Side("exp1"), Side("exp2")])
    assert "Not measured: exp1, exp2, exp3." in agree
    assert "for 2 of our runs: 1 in agreement and 1 not measured" in agree
    assert "0.90 [0.88, 0.92] in exp1, not measured in exp2l" in looks([local("exp1", 0.9)])
    assert "Too few models" in looks([local("exp1", 0.9)])


def sentences(text):
    """A full stop or question mark ends one where a capital or nothing follows."""
    return len(re.findall(r"[.?](?= [A-Z]|$)", text))


@pytest.mark.parametrize("folder", [SHIPPED, None], ids=["shipped", "nothing"])
def test_every_answer_is_one_or_two_sentences(folder):
    found = material(folder, []) if folder else Material()
    answers = {section.name: section.answer(found) for section in SECTIONS}
    assert not [name for name, text in answers.items() if not 1 <= sentences(text) <= 2]
    numbers = {name for name, text in answers.items() if re.search(r"\d", text)}
    assert folder is None or numbers == {*answers}


def test_colours_and_words():
    """The mean over words of the highest noise level alone, with the mean of their intervals."""
    what = {"what": "features/share_in_third", "run": "text", "n": 10}
    rows = [
        Row(value=value, low=value - 0.1, high=value + 0.2, sigma=sigma, condition=word, **what)
        for word, sigma, value in (("red", 14.0, 0.4), ("cube", 14.0, 0.6), ("red", 2.0, 0.9))
    ]
    assert "0.50 [0.40, 0.70] of a word's effect" in elsewhere(rows)
    assert elsewhere([]).count("not measured") == 2 and two_places([]) == []
    reached = elsewhere([k_max("color", 1, 0, 1)])
    assert "the model color reaches K_max 1 [0, 1] (paper: 7 in v1)." in reached
    alike = Row("features/between", 0.41, low=0.4, high=0.42, run="color", index=6, layer="x")
    assert "closest to orthogonal, their mean cosine is 0.41 [0.40, 0.42]" in elsewhere([alike])
    (told,) = two_places([Row("features/two_places", 0.4, low=0.3, high=0.5, run="text")])
    assert "correlate at 0.40 [0.30, 0.50]" in told


def test_theory_counts_what_holds():
    rows = [Row("theory/x", 2.0, claim="some", holds=holds) for holds in (True, False, True)]
    assert "2 of 3 claims of the paper's theory hold" in theory(rows)
    assert "hold (not measured: Structured Identity Mapping" in theory(rows)
    assert theory([]).startswith("Not measured: the paper's theory and Structured")


def test_a_share_in_percent():
    assert in_percent(Row("length/complete", 0.125, low=0.05, high=0.24)) == "12 [5, 24] %"


def test_what_did_not_come_out_is_listed():
    claim = Row("theory/x", 2.0, claim="some claim", holds=False, predicted=1.0, rule="<=")
    rows = [found("exp1", 1.0), found("exp2", 2.0), k_max("exp1", 3, 3, 4), claim]
    lines = failures(rows, [Side("exp1"), Side("exp2")])
    compared = lines["Comparisons of two runs"]
    assert any("exp1 above exp2 (Fig. 1). Not seen in places filled of 9." in x for x in compared)
    (line,) = lines["K_max"]
    assert line.startswith("exp1: 3 [3, 4], paper 9 in v1, 7 in v3: ours is lower. ")
    assert line.endswith(TRIED["exp1"])
    assert lines["Claims of theory"] == ["some claim: 2 (predicted: ≤ 1)."]
    known = replace(claim, what="sim/clock")
    (told,) = failures([known], [])["Claims of theory"]
    assert "gradient descent on the stated loss" in told and "some claim" not in told
    assert claims(rows, "theory") == [claim] and "1 not as expected" in sure(rows)
    assert failures([], [Side("exp1")]) == {}


def test_where_a_shipped_k_max_is_not_the_papers_stands_what_was_tried():
    missed = failures(gather([SHIPPED]), [Side(run) for run in BY_NAME])["K_max"]
    assert len(missed) > 10
    for line in missed:
        assert line.endswith(TRIED[line.partition(":")[0]])


def test_what_guidance_changes_is_told_as_it_was_measured():
    about = {"intervention": "everything", "asked": "paper"}
    (reached,) = where(gather([SHIPPED]), run="exp1", what="length/k_max", rule="paper", **about)
    assert f"the paper does not use, it is {with_interval(reached)}." in TRIED["exp1"]
    about = {
        "run": "exp3",
        "snapshot": "final",
        "asked": "paper",
        "what": "length/complete",
        "K": 2,
    }
    under, without = (
        where(gather([SHIPPED]), intervention=done, **about)[0] for done in ("everything", None)
    )
    shares = f"{under.value:.0%} of its images have both of two such places, {without.value:.0%}"
    assert shares.replace("%", " %") in TRIED["exp3"]


def test_a_finding_tells_in_what_it_is_seen_and_in_what_not():
    rows = [
        found("exp2l", 7.0),
        found("exp2", 2.0),
        k_max("exp2l", 0, 0, 1),
        k_max("exp2", 1, 0, 2),
    ]
    (line,) = [x for x in failures(rows, [])["Comparisons of two runs"] if "exp2l above exp2 " in x]
    assert line.endswith("Seen in places filled of 9; not in K_max by the paper's rule.")


def test_every_finding_is_said_in_full():
    """Each stands alone where it is told, so none leans on the one before it."""
    assert not [effect.says for effect in EFFECTS if "The same" in effect.says]


def test_more_objects_in_training():
    """Figure 8, of runs after equally many images."""
    sides = GROWING[:3]
    assert [side.run for side in sides] == ["exp1-one", "exp1-two", "exp1"]
    rows = [found("exp1-one", 1.0), found("exp1-two", 6.0), found("exp1", 7.0, snapshot="early")]
    rows.append(found("exp1", 8.0, images=4000))
    equal = at_equal_images(sides, rows)  # a longer run is shown by its earlier snapshot
    told = grows(rows, equal)
    assert "1, 2 and 3 objects, models fill 1 [0.80, 1.2], 6 [5.8, 6.2] and 7 [6.8, 7.2]" in told
    assert "as in the paper" in told
    assert "here not always" in grows([*rows[:2], found("exp1", 5.0)], sides)


def test_whether_the_way_labels_enter_decides():
    ours, theirs = found("exp1-one", 2.6, K=6), found("exp1-one-edm2", 1.1, K=6)
    assert "and not measured if they enter as in EDM2 (exp1-one-edm2)." in single([ours])
    assert "2.6 [2.4, 2.8] of six places if its labels act linearly" in single([ours, theirs])
    assert "the way labels enter the network matters" in single([ours, theirs])
    assert "are not what makes it compose" in single([ours, replace(theirs, value=3.0)])


def test_rows_of_other_weights_take_the_place_of_what_ships():
    shipped = [found("exp1", 8.0, weights="a"), local("exp1", 0.9), found("exp2", 1.0, weights="b")]
    own = [found("exp1", 3.0, weights="c")]
    assert merge_rows(shipped, own) == [shipped[2], own[0]]


def test_snapshots_that_ship_stay_beside_the_same_training_measured_here():
    early = found("exp1", 5.0, snapshot="early", weights="e")
    shipped = [found("exp1", 8.0, weights="a"), early]
    again = [replace(shipped[0], date="2026-12-01")]
    assert merge_rows(shipped, again) == [early, again[0]]


def test_of_the_same_weights_more_samples_count():
    shipped = [found("exp1", 8.0, weights="a"), found("exp1", 5.0, K=6, weights="a")]
    few = [Row(**{**found("exp1", 9.0, weights="a").flat(), "n": 4})]
    assert merge_rows(shipped, few) == shipped
    many = [Row(**{**found("exp1", 7.0, weights="a").flat(), "n": 96})]
    assert merge_rows(shipped, many) == many  # the whole measurement, not one K of it


def test_the_usual_measurement_is_chosen():
    rows = [
        found("exp1", 7.0),
        found("exp1", 5.0, asked="random"),
        found("exp1", 6.0, snapshot="early"),
    ]
    rows += [
        Row(**{**found("exp1", 4.0).flat(), "tolerance": 0.05}),
        found("exp1", 3.0, **WITH_LOCAL),
    ]
    assert one(rows, Side("exp1"), "length/found", K=9) == rows[0]
    assert one(rows, Side("exp1", LOCAL), "length/found", K=9) == rows[-1]
    assert where(rows, tolerance=0.05)[0].value == 4.0


def test_what_else_is_told_is_whole_sentences():
    """A text in place of a list of texts would be set letter by letter, each a paragraph."""
    shipped = material(SHIPPED, [])
    texts = [text for section in SECTIONS for text in section.more(shipped)]
    assert texts
    assert all(len(text) > 40 and text.endswith(".") for text in texts)
