"""The experiments on interventions at tiny size, and what is computed in them against closed forms."""

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from composcope.adapters import Phrases
from composcope.errors import InputError
from composcope.evaluation import Found
from composcope.evaluation.answers import read_answers, write_answers
from composcope.experiments import command, imitation, neighbourhoods, overlap, penalty, predict
from composcope.features import sdxl
from composcope.locality import LocalConditions, intervene
from composcope.locality.neighbourhoods import Peaks, Strongest
from composcope.report import interventions, sections, students
from composcope.report.interventions import beyond, close_figure
from composcope.report.material import Material, material
from composcope.report.section_figures import intervention_figures
from composcope.results import Estimate, Row, read_rows, row, where
from composcope.results.arrays import read_origin
from composcope.runs import Config, load
from composcope.runs.config import configure
from composcope.runs.distilling import distill, student_config
from composcope.runs.training import start
from composcope.study.prediction import LOCALITY, LOSS, NOTHING, held_out, prediction
from composcope.study.table import PENALTY_RUNS

TINY = {"images": 32, "batch": 8, "log_every": 1}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of the four kinds that are compared."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("composcope.runs.data.MEASURED", 256)
        for name in ("exp1", "exp2", "exp2l", "color"):
            start(configure(name, "smoke", TINY), folder / name)
    model = load(folder / "exp2")
    config = student_config(model, 16, "local", 0.1875, batch=8)
    distill(model, intervene(model, "local"), config, folder / "exp2-student")
    return folder


# ----------------------------------------------------------------------------
# Overlap.


def test_pairs_are_at_their_distance():
    for distance in (0.05, 0.3):
        for (u, v), (s, t) in overlap.pairs(distance, 20):
            assert math.hypot(u - s, v - t) == pytest.approx(distance)
            assert min(u, v, s, t) > 0 and max(u, v, s, t) < 1
    near, far = (overlap.pairs(d, 5) for d in (0.1, 0.2))
    for a, b in zip(near, far, strict=True):
        np.testing.assert_allclose(np.mean(a, 0), np.mean(b, 0))  # one centre for all distances


def test_the_part_of_a_disc_on_its_own_side():
    """By counting points of a disc."""
    grid = np.linspace(-1, 1, 801)
    x, y = np.meshgrid(grid, grid)
    inside = x**2 + y**2 <= 1
    for a in (0.0, 0.3, 0.9, 1.5):
        counted = (inside & (x <= a)).sum() / inside.sum()
        found = overlap.own_side(2 * a * 0.1, np.array([0.1]))[0]
        assert found == pytest.approx(counted, abs=3e-3)


def test_where_a_curve_falls_to_a_half():
    at = np.array([0.1, 0.2, 0.3])
    assert overlap.crossing(at, np.array([0.0, 0.4, 1.0])) == pytest.approx(0.2 + 0.1 / 6)
    assert overlap.crossing(at, np.array([0.6, 0.9, 1.0])) == 0.1
    assert overlap.crossing(at, np.array([1.0, 1.0, 0.2])) == 0.3


def test_overlap(runs, tmp_path):
    out = tmp_path / "overlap.jsonl"
    names = tuple(str(runs / name) for name in ("exp1", "exp2l", "exp2-student"))
    args = dict(repaired=(str(runs / "exp2"),), distances=(0.1, 0.3), num=2, steps=3, out=out)
    rows = overlap.main(names, **args)
    both = where(rows, what="overlap/both")
    repaired = {("exp2", "local"), ("exp2", "guided")}
    models = repaired | {("exp1", None), ("exp2l", None), ("exp2-student", None)}
    assert {(r.run, r.intervention) for r in both if r.run != "scenes"} == models
    assert {r.distance for r in both} == {0.1, 0.3}
    far = where(both, run="scenes", distance=0.3)
    assert far and far[0].value == 1  # two real objects that far apart are seen
    inside = {r.distance: r.value for r in where(rows, what="overlap/inside")}
    assert inside[0.1] < inside[0.3] <= 1
    (patch,) = where(rows, what="overlap/one_patch")
    assert (patch.run, patch.value) == ("exp2l", 3 / 4)  # patches of 3 of 4 cells
    assert len(where(rows, what="overlap/fails")) == 5
    assert (tmp_path / "overlap" / "overlap.png").exists()
    kept = material(tmp_path, []).close
    assert {(about["run"], about.get("intervention")) for about, _ in kept} == models
    assert all(arrays["images"].shape[:1] == (2,) for _, arrays in kept)
    panels = close_figure(kept).axes
    assert [panel.get_title() for panel in panels[:2]] == ["0.1", "0.3"] and len(panels) == 10
    answers = [*(tmp_path / "overlap").glob("exp*.npz")]
    drawn = {path: path.stat().st_mtime_ns for path in answers}
    again = overlap.main(names, **args)
    assert len(drawn) == 10 and all(path.stat().st_mtime_ns == at for path, at in drawn.items())
    assert {r.key for r in again} == {r.key for r in rows} == {r.key for r in read_rows(out)}


def met(path, which):
    """The file of answers as if in some of its images every place had its object."""
    kept = read_answers(path)
    there = [[Found(u, v, "red", "cube", "large", 1.0) for u, v in asked] for asked in kept.asked]
    found = [there[i] if i in which else [] for i in range(len(there))]
    write_answers(path, replace(kept, found=found), read_origin(path)[0])


def test_a_student_is_compared_with_its_teacher_image_by_image(runs, tmp_path):
    out = tmp_path / "imitation.jsonl"
    args = dict(teacher=runs / "exp2", most=3, num=4, steps=3, out=out)
    imitation.main(str(runs / "exp2-student"), **args)
    for K, (student, teacher) in {
        1: ({0, 1}, {1, 2, 3}),
        2: ({0, 1}, {0, 1}),
        3: ((), {2}),
    }.items():
        met(tmp_path / f"imitation/student/K{K}.npz", student)
        met(tmp_path / f"imitation/teacher/K{K}.npz", teacher)
    rows = imitation.main(str(runs / "exp2-student"), **args)
    differences = {r.K: (r.value, r.low, r.high) for r in where(rows, what="imitation/difference")}
    assert differences[1][0] == -0.25 and differences[1][1] < 0 < differences[1][2]
    assert differences[2] == (0, 0, 0)
    assert differences[3][0] == -0.25
    shares = {(r.intervention, r.K): r.value for r in where(rows, what="imitation/complete")}
    assert [shares[None, K] for K in (1, 2, 3)] == [0.5, 0.5, 0]
    assert [shares["local", K] for K in (1, 2, 3)] == [0.75, 0.5, 0.25]
    assert (tmp_path / "imitation/imitation.png").exists()
    assert {r.key for r in rows} == {r.key for r in read_rows(out)}


def test_what_cannot_be_compared_is_said(runs, tmp_path):
    out = tmp_path / "imitation.jsonl"
    with pytest.raises(InputError, match="exp1 was not distilled"):
        imitation.main(str(runs / "exp1"), out=out)
    with pytest.raises(InputError, match="distilled from other weights than those of exp1"):
        imitation.main(str(runs / "exp2-student"), runs / "exp1", out=out)
    assert list(tmp_path.iterdir()) == []


# ----------------------------------------------------------------------------
# Prediction.


def test_the_draw_is_fixed_and_cheap():
    small = predict.small_runs(28)
    assert small == predict.small_runs(28) and small[:5] == predict.small_runs(5)
    assert small != predict.small_runs(28, seed=1)
    assert predict.small_runs(0) == []
    assert len({one.config.json() for one in small}) == 28
    assert {one.config.recipe.images for one in small} == {predict.IMAGES}
    minutes = [predict.cost.training_minutes(one.config, "laptop") for one in small]
    assert max(minutes) < 15 and sum(minutes) < 10 * len(small)
    for name in ("conditioner", "labels", "objects", "net"):
        assert len({getattr(one.config, name) for one in small}) > 1
    assert len({one.config.recipe.penalty for one in small}) > 2
    assert len({one.config.architecture.width for one in small}) == 3


def known(run: str, locality: float, loss: float, filled: float) -> list[Row]:
    early = {"run": run, "snapshot": "early"}
    late = {"run": run, "snapshot": "final", "K": 6, "asked": "paper"}
    return [
        row("locality/conditional_locality", locality, **early),
        row("locality/near_share", locality, sigma=10.0, **early),
        row("locality/near_share", -locality, sigma=0.1, **early),
        row("training/loss", loss, **early),
        row("length/found", filled, **late),
        row("length/found", 99.0, **late, intervention="local"),
        row("length/found", 0.0, **late, tolerance=0.0625),  # measured last, at an unusual one
    ]


def test_prediction_of_what_is_known():
    """Locality says it all, on a line; the loss says nothing of it."""
    losses = [3.0, 1.0, 2.0, 5.0, 4.0, 0.5]
    rows = [r for i in range(6) for r in known(f"r{i}", i / 10, losses[i], 1 + i / 2)]
    made = prediction(rows)
    whole = {r.concept: r for r in made if r.what == "predict/spearman" and r.sigma is None}
    assert whole[LOCALITY].value == pytest.approx(1) and whole[LOCALITY].n == 6
    assert abs(whole[LOSS].value) < 0.5
    by_level = {r.sigma: r.value for r in made if r.sigma is not None}
    assert by_level == {10.0: pytest.approx(1), 0.1: pytest.approx(-1)}
    errors = {r.concept: r.value for r in where(made, what="predict/error")}
    assert errors[LOCALITY] == pytest.approx(0, abs=1e-9)
    assert errors[NOTHING] > 0.5 and errors[LOSS] > 0.5
    # Held out by hand: of three points the line through two of them misses the third.
    value = held_out(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 3.0])).value
    assert value == pytest.approx(np.sqrt((1 + 0.25 + 1) / 3))
    assert prediction(rows[:6]) == []


def test_predict(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("composcope.runs.data.MEASURED", 256)
    monkeypatch.setattr(predict, "IMAGES", 40)
    monkeypatch.setattr(predict, "WIDTHS", (8,))
    monkeypatch.setattr(predict, "RADII", (1,))
    args = dict(count=2, preset="smoke", num=2, samples=2, levels=2, folders=())
    args |= {"work": tmp_path / "runs", "out": tmp_path / "predict.jsonl"}
    assert predict.main(**args, dry_run=True) == [] and not (tmp_path / "runs").exists()
    assert "2 runs" in capsys.readouterr().out
    predict.main(**args)
    rows = read_rows(tmp_path / "predict.jsonl")
    names = {one.name for one in predict.small_runs(2, "smoke")}
    for what in ("training/loss", "locality/conditional_locality"):
        assert {r.run for r in where(rows, what=what, snapshot="early")} == names
    assert {r.run for r in where(rows, what="length/found", K=6, snapshot="final")} == names
    before = (tmp_path / "predict.jsonl").read_text()
    predict.main(**args)
    assert (tmp_path / "predict.jsonl").read_text() == before
    assert (tmp_path / "predict" / "predict.png").exists()


def test_penalty(tmp_path, monkeypatch, capsys):
    """A sweep of two weights and two radii, then the best one beside none; each is measured once."""
    monkeypatch.setattr("composcope.runs.data.MEASURED", 256)
    monkeypatch.setattr(penalty, "WEIGHTS", (0.0, 0.3))
    monkeypatch.setattr(penalty, "RADII", (0.1875, 0.28))
    monkeypatch.setattr(penalty, "PENALTY_RUNS", {"exp3": PENALTY_RUNS["exp3"]})
    monkeypatch.setattr(penalty, "LOCATIONS_ASKED", 2)
    args = dict(preset="smoke", small_images=32, images=64, num=1, samples=2, levels=2)
    args |= {"work": tmp_path / "runs", "out": tmp_path / "penalty.jsonl", "from_nothing": True}
    assert penalty.main(**args, dry_run=True) == [] and not (tmp_path / "runs").exists()
    assert capsys.readouterr().out.count("min of training") == 5
    rows = penalty.main(**args)
    assert [r.K for r in where(rows, what="penalty/found")] == [1, 6] * 3
    local = where(rows, what="penalty/conditional_locality")
    assert [r.K for r in local] == [1, 4] * 3
    at = [(r.penalty, r.radius) for r in local[::2]]
    assert at == [(0.0, 0.1875), (0.3, 0.1875), (0.1, 0.28)]
    trained = [Config.load(path).recipe for path in (tmp_path / "runs").glob("?.*/config.json")]
    assert {(one.penalty, one.penalty_radius) for one in trained} == {*at[1:]}
    both = {r.run for r in where(rows, what="locality/conditional_locality")}
    assert both == {"exp3-longer", "exp3-penalty"}
    chosen = Config.load(tmp_path / "runs" / "exp3-penalty" / "config.json").recipe
    assert (chosen.penalty, chosen.penalty_radius) == penalty.best(rows)
    assert penalty.main(**args) == rows
    assert (tmp_path / "penalty" / "penalty.png").exists()


def test_the_best_penalty_costs_little_at_one_place():
    """The most places filled wins, unless single objects suffer; of equals the smaller weight."""

    def measured(weight: float, complete: float, filled: float) -> list[Row]:
        at = {"penalty": weight, "radius": penalty.USUAL_RADIUS}
        one = row(penalty.COMPLETE, complete, K=1, **at)
        return [one, row(penalty.FOUND, filled, K=6, **at)]

    rows = [*measured(0.0, 1.0, 5.0), *measured(0.03, 0.95, 2.0), *measured(0.1, 0.91, 4.0)]
    assert penalty.best(rows) == (0.1, penalty.USUAL_RADIUS)
    assert penalty.best([*rows, *measured(0.3, 0.95, 4.0)]) == (0.1, penalty.USUAL_RADIUS)
    assert penalty.best([*rows, *measured(1.0, 0.8, 6.0)]) == (0.1, penalty.USUAL_RADIUS)


def test_an_experiment_refuses_in_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["predict", "--count", "-1"])
    with pytest.raises(SystemExit) as ended:
        command(predict.main)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "composcope: a draw has 0 runs or more\n"


# ----------------------------------------------------------------------------
# Neighbourhoods.


@pytest.mark.parametrize("precision", [torch.float32, torch.float64, torch.float16])
def test_peaks_are_where_conditions_act(precision):
    """Two conditions that act on one pixel each, with noise far below: these are their places."""
    x0 = torch.zeros(3, 3, 16, 16, dtype=precision)
    x0[1, :, 4, 4] = 1.0
    x0[2, :, 12, 10] = 2.0
    found = Peaks(width=0.02).places(x0)
    torch.testing.assert_close(found, torch.tensor([[4.5, 4.5], [10.5, 12.5]]).to(x0) / 16)
    # A second condition that acts there too, but less decidedly, has to go elsewhere.
    x0[2] = 0
    x0[2, :, 4, 4] = 1.0
    x0[2, :, 12, 12] = 0.9
    found = Peaks(width=0.02).places(x0)
    torch.testing.assert_close(found, torch.tensor([[4.5, 4.5], [12.5, 12.5]]).to(x0) / 16)


def test_where_there_is_no_room_places_are_shared():
    assert Peaks(radius=1.0).places(torch.rand(5, 3, 8, 8)).shape == (4, 2)


class Talker:
    """A text model that paints the pixel of each word it hears."""

    shape = (3, 8, 8)

    def encode(self, prompts):
        return torch.tensor([[float("left" in p), float("right" in p)] for p in prompts])

    def __call__(self, x, sigma, cond):
        out = torch.zeros_like(x)
        out[:, :, :, 1] = cond[:, 0, None, None]
        out[:, :, :, 6] = cond[:, 1, None, None]
        return out


def test_phrases_are_heard_where_they_act():
    model = LocalConditions(Talker(), Phrases(Talker().encode), Strongest())
    cond = model.conditioner([("a left", "a right")] * 2)
    x0 = model(torch.zeros(2, 3, 8, 8), torch.ones(2), cond)
    assert (x0[:, :, :, 1] == 1).all() and (x0[:, :, :, 6] == 1).all() and x0.sum() == 2 * 3 * 16


def test_phrases_are_met_by_colour_and_third():
    red = Found(0.1, 0.5, "red", "cube", "small", 1.0)
    blue = Found(0.9, 0.5, "blue", "cube", "small", 1.0)
    assert neighbourhoods.met_by([("red", "cube", 0), ("blue", "cube", 2)], [red, blue]) == 2
    assert neighbourhoods.met_by([("red", "cube", 1), ("blue", "cube", 2)], [red, blue]) == 1
    assert neighbourhoods.met_by([("red", "cube", 0)] * 2, [red]) == 1
    for index in range(20):
        some = neighbourhoods.phrases_of(3, index)
        assert [third for _, _, third in some] == [0, 1, 2]
        assert len({color for color, _, _ in some}) == 3


def test_neighbourhoods(runs, tmp_path, monkeypatch):
    from small_sdxl import random_pipeline

    monkeypatch.setattr(neighbourhoods.sdxl, "load", lambda name: sdxl.SDXL(random_pipeline()))
    out = tmp_path / "neighbourhoods.jsonl"
    rows = neighbourhoods.main((str(runs / "color"),), "text", 2, 2, 3, out)
    ways = {None, "own", "peaks", "clusters", "everywhere"}
    for what, found in (("length/found", ways), ("text/found", ways | {"words"})):
        assert {r.intervention for r in where(rows, what=what)} == found
    assert {r.K for r in where(rows, what="text/found")} == {1, 2, 3}
    grouped = where(rows, what="text/grouped")
    assert [r.K for r in grouped] == [1, 2, 3] and grouped[0].value == 1  # one group: one phrase
    assert (tmp_path / "neighbourhoods" / "neighbourhoods.png").exists()
    drawn = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("K*.npz")}
    neighbourhoods.main((str(runs / "color"),), "text", 2, 2, 3, out)
    assert drawn and all(path.stat().st_mtime_ns == at for path, at in drawn.items())
    with pytest.raises(InputError, match="no way 'cluster'; the ways are plain, own"):
        neighbourhoods.main((), None, ways=("cluster",), out=out)


# ----------------------------------------------------------------------------
# The report.


def test_the_report_shows_what_is_measured():
    assert beyond([]) == [] and intervention_figures(Material()) == []
    curve = [
        row("overlap/both", share, run="exp1", distance=d) for d, share in ((0.1, 0.2), (0.3, 1.0))
    ]
    colours = [
        row("length/found", 3.0, run="color", K=4, intervention=way) for way in (None, "own")
    ]
    losses = [3.0, 1.0, 2.0, 5.0]
    small = [r for i in range(4) for r in known(f"r{i}", i / 10, losses[i], 1 + i / 2)]
    rows = [*curve, row("overlap/fails", 0.17, run="exp1"), *colours, *small, *prediction(small)]
    said = " ".join(beyond(rows))
    assert "0.17 (exp1)" in said and "Of 4 colours color draws" in said
    assert "1 [1, 1] for the early conditional locality" in said
    assert len(intervention_figures(Material(rows))) == 3
    alike = [row("imitation/complete", 0.9, run="exp2-student", K=K) for K in (1, 2)]
    assert len(intervention_figures(Material(rows + alike))) == 4
    forced = next(section for section in sections.SECTIONS if section.name == "forced")
    assert len(forced.figures(Material(rows=rows))) >= 3
    assert sections.section(forced, Material(rows=rows)).count("<figure") >= 3


def test_the_teacher_and_the_newest_student_stand_in_the_figure_of_imitation():
    taught = {"run": "exp2", "intervention": "guided", "radius": 1.5 / 8, "weights": "a"}
    before = {"run": "exp2", "intervention": "local", "radius": 1.5 / 8, "weights": "a"}
    old, new = ({"run": "exp2-student", "weights": name} for name in ("b", "c"))
    rows = [row("imitation/complete", 0.9, K=1, **about) for about in (taught, before, old, new)]
    dated = [replace(one, date=f"2026-01-0{i}") for i, one in enumerate(rows, 1)]
    shown = students.imitated(dated[::-1])
    assert [(one.intervention, one.weights) for one in shown] == [(None, "c"), ("guided", "a")]


def test_guidance_alone_is_no_neighbourhood_that_colours_find():
    ways = (None, "own", "everything")
    rows = [row("length/found", 3.0, run="color", K=4, intervention=way) for way in ways]
    said = interventions.own_places(rows)
    assert "(own)" in said and "everything" not in said
    assert not interventions.own_places(rows[::2])


def test_student_and_teacher_are_told_apart_in_percentage_points():
    assert students.imitation([]) == ""
    student, teacher = {"run": "exp2-student"}, {"run": "exp2", "intervention": "guided"}
    rows = [
        row("imitation/difference", Estimate(-0.01, -0.02, 0.0, 480), K=3, **student),
        row("imitation/difference", Estimate(-0.125, -0.15, -0.1, 480), K=6, **student),
        row("imitation/k_max", Estimate(2, 2, 6, 480), rule="places", **student),
        row("imitation/k_max", Estimate(7, 2, 7, 480), rule="places", radius=1.5 / 8, **teacher),
    ]
    said = students.imitation(rows)
    assert "On 480 other images" in said
    assert "by -1.0 [-2.0, +0.0] percentage points at three" in said
    assert "by -12.5 [-15.0, -10.0] at six." in said
    assert "is 2 [2, 6] there, its teacher's 7 [2, 7]." in said
