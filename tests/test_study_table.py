"""The table of the study: the paper's values as data, runs of one network and one number of images,
comparisons."""

from dataclasses import replace

import pytest

from composcope.diffusion.train import SNAPSHOTS
from composcope.experiments.score_machines import KINDS
from composcope.results import Row
from composcope.study import cost, effects, table
from composcope.study.effects import EFFECTS, K_MAX, Effect, Side, compare
from composcope.study.paper import PaperValue
from composcope.study.table import BY_NAME, GUIDANCE, LOCAL, RUNS, network_words


def test_the_values_of_the_paper_by_version():
    assert BY_NAME["exp1"].paper_k_max == (PaperValue(9, 9, "v1"), PaperValue(7, 7, "v3"))
    assert BY_NAME["exp2"].paper_k_max[0].extras == (0, 2)
    assert [str(value) for value in BY_NAME["exp2l"].paper_k_max] == ["9+(0-2)", "9"]
    assert str(BY_NAME["random"].paper_none_asked[0]) == "0-3"
    assert BY_NAME["color"].paper_k_max == (PaperValue(7, 7, "v1"),)
    for name in ("exp3s", "exp2l-wide"):  # not in the paper, and without a number there
        assert BY_NAME[name].paper_k_max == BY_NAME[name].paper_none_asked == ()


def test_all_runs_have_one_number_of_images_and_one_network_a_kind():
    configs = [run.config("laptop") for run in RUNS]
    # The runs of Figure 1 and the list go on; on their way they have what the others have in the
    # end, and are measured there.
    images = {run.name: run.config("laptop").recipe.images for run in RUNS}
    long = {run for run in images if images[run] != 64_000}
    assert long == {"exp1", "exp1-five", "exp2", "exp2l", "exp3", "exp3l", "color"}
    earlier = {
        run: {images[run] * SNAPSHOTS[name] for name in BY_NAME[run].snapshots} for run in long
    }
    assert images["exp3l"] == images["exp3"]  # and is compared with it alone
    for run in long - {"exp3l", "color"}:  # colours are compared with no other run
        assert 64_000 in earlier[run]
    on_images = {network_words(run.name, "laptop") for run in RUNS if run.config().net == "global"}
    on_patches = {network_words(run.name, "laptop") for run in RUNS if run.config().net == "local"}
    # One run has labels as EDM2 has them; the paper's patches, and those as wide as the image.
    assert len(on_images) == 2 and len(on_patches) == 2
    assert network_words("exp1-one-edm2", "laptop") != network_words("exp1-one", "laptop")
    assert {run.config().recipe.seed for run in RUNS} == {0, 1}
    assert len({config.json() for config in configs}) == len(RUNS)  # no run is there twice


def test_every_effect_is_about_runs_of_the_study():
    for effect in EFFECTS:
        for side in (effect.above, effect.below):
            assert side.run in {*BY_NAME, *table.MACHINES, *table.TRAINED_FURTHER, table.STUDENT}
            assert side.intervention is None or side.intervention in BY_NAME[side.run].interventions
    assert any("with a list pixels look further" in effect.says for effect in EFFECTS)
    assert any("middle noise" in effect.says for effect in EFFECTS)


def test_the_machines_of_the_table_are_those_of_their_experiment():
    assert [kind.name for kind in KINDS] == list(table.MACHINES)


def k_max(run: str, value: int, low: int, high: int, **more) -> Row:
    usual = {
        "snapshot": "final",
        "rule": "paper",
        "asked": "paper",
        "max_K": 12,
        "tolerance": 0.1,
        "images": 256_000,
    }
    return Row("length/k_max", value, low, high, 48, run=run, **{**usual, **more})


EFFECT = Effect("Fig. 1", "", Side("exp1"), Side("exp2"), K_MAX)


def test_extras_are_not_judged_by_places_alone():
    """A run with one label is told by its K_max by places, one with all labels by its only one."""
    both = Effect("Fig. 1", "", Side("exp1"), Side("exp2"), effects.PLACES)
    about = {"what": "length/k_max", "images": 100, "tolerance": 0.1, "snapshot": "final"}
    exp1 = Row(run="exp1", labels="all", rule="paper", value=7.0, low=5.0, high=8.0, **about)
    harsh = Row(run="exp2", rule="paper", value=0.0, low=0.0, high=0.0, **about)
    places = Row(run="exp2", rule="places", value=2.0, low=1.0, high=2.0, **about)
    compared = compare(both, [exp1, harsh, places])
    assert (compared.above, compared.below, compared.agrees) == (exp1, places, "apart")
    assert compare(both, [exp1, harsh]).agrees == "not measured"


@pytest.mark.parametrize(
    ("above", "below", "agrees"),
    [
        ((7, 5, 8), (1, 1, 2), "apart"),
        ((3, 2, 5), (1, 1, 2), "overlap"),
        ((1, 1, 2), (1, 1, 2), "no"),
    ],
)
def test_whether_intervals_are_apart(above, below, agrees):
    found = compare(EFFECT, [k_max("exp1", *above), k_max("exp2", *below)])
    assert found.agrees == agrees and (found.above.value, found.below.value) == (above[0], below[0])
    assert found.terms == "at equal network, training images (256,000), tolerance (0.1)"


def test_what_is_not_equal_is_told():
    rows = [k_max("exp1", 7, 6, 8, images=480_000), k_max("exp2", 1, 1, 2, tolerance=0.0625)]
    words = compare(EFFECT, rows).terms
    assert (
        "training images 480,000 against 256,000" in words
        and "tolerance 0.1 against 0.0625" in words
    )
    patches = Effect("Fig. 1", "", Side("exp2l"), Side("exp2"))
    words = compare(patches, [k_max("exp2l", 9, 8, 9), k_max("exp2", 1, 1, 2)]).terms
    assert "network on patches of 5 of 16 cells against whole images" in words
    assert compare(EFFECT, rows[:1]).agrees == "not measured"


def test_of_several_rows_the_pair_that_differs_least_and_then_the_newest_is_compared():
    rows = [
        k_max("exp1", 5, 4, 6, tolerance=0.0625, date="2026-03-01"),
        k_max("exp1", 6, 5, 7, date="2026-01-01"),
        k_max("exp1", 7, 6, 8, date="2026-02-01", weights="other"),
        k_max("exp2", 1, 1, 2, date="2026-01-01"),
        k_max("exp2", 8, 8, 9, intervention="local", radius=LOCAL.radius),
        k_max("exp2", 9, 8, 9, intervention="local", radius=0.125),
        k_max("exp1", 2, 2, 2, snapshot="early"),
        k_max("exp1", 3, 3, 3, rule="strict"),
    ]
    assert compare(EFFECT, rows).above.tolerance == 0.1
    narrow = [replace(row, tolerance=0.0625, date="2026-12-31") for row in rows[1:4]]
    assert compare(EFFECT, rows + narrow).above.tolerance == 0.1  # the usual one, not the newest
    assert (
        compare(
            EFFECT, [replace(row, date="2026-02-02") if row.run == "exp2" else row for row in rows]
        ).above.value
        == 7
    )
    assert compare(replace(EFFECT, above=Side("exp2", LOCAL)), rows).above.value == 8


def test_a_detector_chooses_no_pair_and_is_told():
    """While one run is counted anew, rows of an unusual tolerance have one detector still."""
    rows = [
        k_max("exp1", 7, 6, 8, detector="new"),
        k_max("exp1", 1, 1, 2, tolerance=0.0625, detector="old"),
        k_max("exp2", 2, 1, 2, detector="old"),
        k_max("exp2", 0, 0, 1, tolerance=0.0625, detector="old"),
    ]
    found = compare(EFFECT, rows)
    assert (found.above.value, found.below.value) == (7, 2)
    assert found.terms == "not equal: detector new against old"


def test_a_run_that_went_on_is_compared_as_it_was_after_as_many_images():
    policy = Effect("Table 2", "", Side("exp1"), Side("random"), K_MAX)
    rows = [
        k_max("exp1", 8, 8, 9),
        k_max("exp1", 6, 5, 7, snapshot="middle", images=128_000),
        k_max("random", 4, 4, 5, images=128_000),
        k_max("random", 3, 3, 4, images=64_000, snapshot="middle"),
        k_max("exp1", 2, 2, 3, images=64_000, snapshot="early"),
    ]
    found = compare(policy, rows)
    assert (found.above.value, found.below.value) == (6, 4)
    assert "training images (128,000)" in found.terms


def test_a_run_whose_rate_fell_to_zero_is_compared_as_it_was_before():
    """exp1 cools at the end, exp3s does not."""
    sets = Effect("ours", "", Side("exp1"), Side("exp3s"), K_MAX)
    rows = [k_max("exp1", 8, 8, 9), k_max("exp3s", 2, 1, 2)]
    assert compare(sets, rows).terms == "not equal: the learning rate of only one falls to zero"
    half = {"snapshot": "middle", "images": 128_000}
    found = compare(sets, [*rows, k_max("exp1", 6, 5, 7, **half), k_max("exp3s", 1, 1, 1, **half)])
    assert (found.above.value, found.below.value) == (6, 1)
    assert found.terms == "at equal network, training images (128,000), tolerance (0.1)"


def test_runs_after_equal_numbers_of_images():
    def filled(run: str, images: int, snapshot: str = "final") -> Row:
        return Row("length/found", 5.0, run=run, images=images, snapshot=snapshot, K=6)

    rows = [filled("exp1", 128_000), filled("exp1", 64_000, "middle"), filled("random", 64_000)]
    sides = (Side("exp1"), Side("random"), Side("drop-one"))
    snapshots = [side.snapshot for side in effects.at_equal_images(sides, rows)]
    assert snapshots == ["middle", "final", "final"]
    assert effects.at_equal_images(sides, []) == sides


def test_over_pixels_and_noise_levels_the_mean_is_compared():
    def square(sigma: float, pixel: tuple[int, int], value: float) -> Row:
        more = {
            "run": "exp1",
            "snapshot": "final",
            "states": "trajectory",
            "sigma": sigma,
            "pixel": pixel,
        }
        return Row("locality/square", value, value - 2, value + 2, 16, **more)

    rows = [
        square(80.0, (1, 1), 9.0),
        square(80.0, (2, 2), 11.0),
        square(20.0, (1, 1), 13.0),
        square(1.0, (1, 1), 30.0),
    ]
    effect = next(one for one in EFFECTS if "at middle noise than at high" in one.says)
    found = compare(effect, rows)
    assert (found.above.value, found.below.value, found.below.low) == (
        30,
        11,
        9,
    ) and found.agrees == "apart"


def test_operations_of_the_paper_are_counted():
    """1.1 TFLOP a training image; patches are seen two an image, in training, and 256 an image in
    sampling."""
    config = BY_NAME["exp1"].config("paper")
    assert cost.training_operations(config) == pytest.approx(1.1e12, rel=0.02)
    local = BY_NAME["exp2l"].config("paper")
    assert cost.training_operations(local) == 6 * cost.operations(local)
    assert cost.views(local) == 256 and cost.views(config) == 1
    assert cost.operations(local, drawing=True) < cost.operations(local)
    assert cost.operations(config, drawing=True) == cost.operations(config)
    passes = [cost.evaluation_passes(10, 3, 2, done) for done in (None, GUIDANCE, LOCAL)]
    assert passes == [10 * 3 * 4, 10 * 3 * (1 + 2 + 2 + 2), 10 * 3 * (1 + 2 + 3 + 4)]
    hours = cost.training_minutes(config, "paper") / 60
    assert hours == pytest.approx(128 * 2**20 * 1.1e12 / cost.GPU / 3600, rel=0.02)


def test_a_student_is_compared_with_the_run_it_began_with_and_not_by_images():
    """Its images are states of its teacher; of exp2 the final weights are meant, not a snapshot."""
    found = {"run": "exp2", "tolerance": 0.1, "n": 48, "K": 9}
    early = Row("length/found", 2.0, snapshot="early", images=64_000, date="2026-11-18", **found)
    final = replace(early, value=1.4, snapshot="final", images=256_000, date="2026-11-17")
    taught = replace(final, run=table.STUDENT, value=6.6, images=58_848)
    effect = effects.Effect("", "", Side(table.STUDENT), Side("exp2"), effects.FILLED_9)
    compared = effects.compare(effect, [early, final, taught])
    assert compared.below == final
    assert compared.terms == "not equal: the student learned from its teacher, not from images"


def test_sides_of_unequally_many_samples_say_so():
    """As patches as wide as the image, of which fewer were drawn."""
    few = Row("length/found", 1.9, run="b", n=16, K=9)
    many = replace(few, run="a", value=7.0, n=48)
    effect = effects.Effect("", "", Side("a"), Side("b"), effects.FILLED_9)
    assert effects.compare(effect, [few, many]).terms == "not equal: samples 48 against 16"
