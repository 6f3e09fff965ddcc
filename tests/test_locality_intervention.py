"""Interventions on denoisers whose answer for every condition set is known at every pixel."""

from dataclasses import dataclass
from types import MappingProxyType

import pytest
import torch

from composcope.adapters import Classes, Phrases, from_x0
from composcope.diffusion.denoiser import Counted
from composcope.diffusion.guidance import Guided
from composcope.diffusion.sample import draw
from composcope.errors import InputError
from composcope.features.words import Words as WordsOf
from composcope.locality import (
    INTERVENTIONS,
    ComposedScores,
    LocalConditions,
    LocalPixels,
    Nearest,
    Strongest,
    Within,
    audit,
    influence,
    intervene,
)
from composcope.locality.neighbourhoods import Whole
from composcope.scenes import LocationGrid
from composcope.scenes.condition import ColorCounts, Vocabulary


@dataclass(frozen=True)
class Cells:
    """One-hot cells of an 8 x 8 grid."""

    features: int = 64

    def __call__(self, condition_sets, seed=0):
        return torch.stack([self.left_out(asked)[0] for asked in condition_sets])

    def left_out(self, condition_set, seed=0):
        parts = torch.eye(64)[[int(v * 8) * 8 + int(u * 8) for u, v in condition_set]]
        return torch.cat([parts.sum(0)[None], parts.sum(0) - parts])

    def split(self, cond):
        return torch.eye(64)[cond > 0]

    def places(self, parts):
        cell = parts.argmax(1)
        return torch.stack([cell % 8 + 0.5, cell // 8 + 0.5], 1) / 8


def code(x, sigma, cond):
    """Every pixel says which cells were asked: cell j adds j + 1, far or near. The worst of global
    denoisers. Of nothing it says nothing."""
    asked = torch.zeros(len(x), 64) if cond is None else cond
    return torch.zeros_like(x) + (asked @ torch.arange(1.0, 65))[:, None, None, None]


X, SIGMA = torch.randn(2, 1, 16, 16), torch.tensor([1.0, 1.0])
CENTRE = 3 * 8 + 3  # the cell (row 3, column 3): pixels 6 and 7
BESIDE = 3 * 8 + 5  # two cells to the right: pixels 10 and 11
COND = torch.eye(64)[[CENTRE, BESIDE]].sum(0)


def asked_of_both():
    return torch.stack([COND, torch.zeros(64)])


def test_hard_neighbourhoods_cut_the_image_at_exactly_their_radius():
    local = LocalConditions(code, Cells(), Nearest(radius=0.1875))
    x0 = local(X, SIGMA, asked_of_both())
    expected = torch.zeros(16, 16)
    # Three by three cells, up to the middle between the two places.
    expected[4:10, 4:9] = CENTRE + 1
    expected[4:10, 9:14] = BESIDE + 1
    assert torch.equal(x0[0, 0], expected)
    assert (x0[1] == 0).all()


def test_within_a_radius_conditions_add_up_where_they_overlap():
    x0 = LocalConditions(code, Cells(), Within(radius=0.1875))(X, SIGMA, asked_of_both())
    expected = torch.zeros(16, 16)
    expected[4:10, 4:10] += CENTRE + 1
    expected[4:10, 8:14] += BESIDE + 1
    assert torch.equal(x0[0, 0], expected)


def test_passes_are_one_for_each_different_set_and_cost_what_is_counted():
    cases = (Nearest(), 3 + 1), (Within(), 4 + 1), (Within(radius=1.125), 1 + 1)
    for neighbourhoods, passes in cases:
        counted = Counted(code)
        LocalConditions(counted, Cells(), neighbourhoods)(X, SIGMA, asked_of_both())
        assert counted.evaluations == passes
    counted = Counted(code)
    turns = LocalConditions(counted, Cells(), Within(), rows=2)(X, SIGMA, asked_of_both())
    assert counted.evaluations == 5
    assert torch.equal(turns, LocalConditions(code, Cells(), Within())(X, SIGMA, asked_of_both()))


def test_leaving_each_condition_out_takes_no_pass_twice():
    """Nothing, and each of three places alone: as many as drawing takes."""
    counted = Counted(code)
    places = [(0.2, 0.2), (0.5, 0.5), (0.8, 0.8)]
    acts = influence(LocalConditions(counted, Cells()), X[:1], 1.0, Cells(), places)
    assert counted.evaluations == 4
    assert (acts.flatten(1).amax(1) > 0).all()


def test_a_radius_as_wide_as_the_image_changes_nothing():
    assert torch.equal(
        LocalConditions(code, Cells(), Within(radius=1.125))(X, SIGMA, asked_of_both()),
        code(X, SIGMA, asked_of_both()),
    )


def test_the_radius_may_depend_on_the_noise_level_of_each_image():
    cond = torch.eye(64)[[CENTRE, CENTRE]]
    by_noise = LocalConditions(
        code, Cells(), Nearest(radius=lambda sigma: 0.0625 if sigma < 1 else 0.1875)
    )
    x0 = by_noise(X, torch.tensor([2.0, 0.1]), cond)
    assert ((x0 > 0).sum((1, 2, 3)) == torch.tensor([36, 4])).all()


def test_smooth_neighbourhoods_blend_and_keep_the_mean_of_a_constant():
    smooth = LocalConditions(code, Cells(), Nearest(radius=0.1875, smooth=0.0625))
    x0, hard = (
        smooth(X, SIGMA, asked_of_both())[0, 0],
        LocalConditions(code, Cells())(X, SIGMA, asked_of_both())[0, 0],
    )
    assert not torch.allclose(x0, hard)
    assert (x0[6:8, 3:6].diff(dim=1) > 0).all()  # rising over the left border, where it was a step
    assert torch.allclose(x0[7, 6], torch.tensor(CENTRE + 1.0), rtol=0.05)
    same = LocalConditions(lambda x, sigma, cond: x, Cells(), Nearest(smooth=0.0875))
    assert torch.allclose(same(X, SIGMA, asked_of_both()), X, atol=1e-5)


def test_measured_neighbourhoods_are_where_a_condition_acts():
    def paint(x, sigma, cond):
        """A cell asked for is painted two cells above its place, a little of it everywhere."""
        cells = cond.view(-1, 1, 8, 8).roll(-2, 2)
        return (
            5 * cells.repeat_interleave(2, 2).repeat_interleave(2, 3)
            + 0.1 * cond.sum(1)[:, None, None, None]
        )

    x0 = LocalConditions(paint, Cells(), Strongest(share=0.25))(X, SIGMA, asked_of_both())[0, 0]
    expected = torch.zeros(16, 16)
    expected[2:4, 6:8] = expected[2:4, 10:12] = 5.1
    assert torch.allclose(x0, expected)


def test_composed_scores_are_the_sum_of_single_scores_less_the_background():
    torch.manual_seed(1)
    effect, ground = torch.randn(64, 1, 16, 16), torch.randn(1, 16, 16)

    def curved(x, sigma, cond):
        return ground + torch.einsum("bf,fchw->bchw", cond, effect).tanh() + 0.5 * x

    cond = torch.eye(64)[[1, 5, 7]].sum(0)[None]
    single = [curved(X[:1], SIGMA[:1], torch.eye(64)[[k]]) for k in (1, 5, 7)]
    none = curved(X[:1], SIGMA[:1], torch.zeros(1, 64))
    assert torch.allclose(
        ComposedScores(curved, Cells())(X[:1], SIGMA[:1], cond), sum(single) - 2 * none, atol=1e-5
    )
    assert torch.allclose(ComposedScores(curved, Cells())(X[:1], SIGMA[:1], 0 * cond), none)
    for wrap in (ComposedScores, LocalConditions):
        assert torch.equal(wrap(lambda x, sigma, cond: -x, Cells())(X, SIGMA, None), -X)


@pytest.mark.parametrize("fill", ["noise", "mean"])
def test_local_pixels_change_a_denoiser_only_beyond_their_radius(fill):
    weight = torch.randn(1, 1, 5, 5)  # reaches 2 pixels: one cell of an 8 x 8 grid over 16 x 16

    def blur(x, sigma, cond):
        return torch.nn.functional.conv2d(x, weight, padding=2)

    whole = blur(X, SIGMA, None)
    assert torch.allclose(
        LocalPixels(blur, radius=0.125, fill=fill)(X, SIGMA, None), whole, atol=1e-5
    )
    assert not torch.allclose(
        LocalPixels(blur, radius=0, fill=fill)(X, SIGMA, None), whole, atol=1e-1
    )
    counted = Counted(blur)
    LocalPixels(counted, radius=0.25, cell=0.25)(X, SIGMA, None)
    assert counted.evaluations == 2 * 16


def test_local_pixels_are_those_of_an_image_whatever_is_beside_it():
    def total(x, sigma, cond):
        return torch.zeros_like(x) + x.sum((1, 2, 3), keepdim=True)

    local = LocalPixels(total, radius=0)
    torch.testing.assert_close(local(X, SIGMA, None)[1:], local(X[1:], SIGMA[1:], None))


def test_what_local_pixels_do_not_see_is_the_mean_or_noise_of_the_level():
    def total(x, sigma, cond):
        return torch.zeros_like(x) + x.sum((1, 2, 3), keepdim=True)

    ones = torch.ones(2, 1, 16, 16)
    assert torch.allclose(
        LocalPixels(total, 0, fill="mean", mean=2.0)(ones, SIGMA, None), torch.tensor(4 + 252 * 2.0)
    )
    sigma = torch.tensor([3.0, 3.0])
    filled = [LocalPixels(total, 0, fill="noise", seed=s) for s in range(200)]
    sums = [denoiser(ones, sigma, None)[0, 0, 0, 0] for denoiser in filled]
    assert torch.stack(sums).std() == pytest.approx(3 * 252**0.5, rel=0.15)
    assert torch.stack(sums).mean() == pytest.approx(4, abs=4 * 3 * 252**0.5 / 200**0.5)


def test_numbers_of_double_precision_are_taken():
    x, sigma = torch.randn(1, 3, 32, 32).double(), torch.ones(1).double()
    grid = LocationGrid(8)
    cond = grid([((0.3, 0.3), (0.7, 0.7))]).double()
    wrapped = LocalConditions(lambda x, sigma, cond: x + cond.sum(1)[:, None, None, None], grid)
    assert wrapped(x, sigma, cond).dtype == torch.float64


class Words:
    """Three words without places: all that Strongest needs of a conditioner."""

    features = 3

    def __call__(self, condition_sets, seed=0):
        return torch.stack([self.left_out(asked)[0] for asked in condition_sets])

    def left_out(self, condition_set, seed=0):
        parts = torch.eye(3)[list(condition_set)]
        return torch.cat([parts.sum(0)[None], parts.sum(0) - parts])

    def split(self, cond):
        return torch.eye(3)[cond > 0]


def test_conditions_without_places_have_the_neighbourhoods_in_which_they_act():
    def stripes(x, sigma, cond):
        """Word k paints the columns k, k + 3, ... with k + 1, and asked with others spoils
        everything."""
        columns = torch.arange(16) % 3
        painted = sum((columns == k) * (k + 1.0) * cond[:, k, None] for k in range(3))
        several = (cond.sum(1) > 1)[:, None, None, None]
        return torch.zeros_like(x) + painted[:, None, None] - 9 * several

    cond = Words()([(0, 2), (1,)])
    x0 = LocalConditions(stripes, Words(), Strongest())(X, SIGMA, cond)
    columns = torch.arange(16) % 3
    assert torch.equal(x0[0, 0, 5], (columns == 0) * 1.0 + (columns == 2) * 3.0)
    assert torch.equal(x0[1, 0, 5], (columns == 1) * 2.0)
    with pytest.raises(InputError, match="have no places to be near to"):
        LocalConditions(stripes, Words())(X, SIGMA, cond)


CLASSES = Classes(3, null=3, names={"cat": 0, "dog": 1, "owl": 2})


def painted(label):
    """Class k paints the columns k, k + 3, ... with k + 1; class 3, which is none, nothing."""
    columns = torch.arange(16) % 3
    return (columns == label[:, None]) * (label[:, None] + 1.0)


def of_classes(x, sigma, cond):
    assert cond.shape[1] == 4
    return torch.zeros_like(x) + painted(cond.argmax(1))[:, None, None]


def encoded(prompts):
    """A text encoder that is no sum: two animals are as far from either as can be."""
    animals = [[k + 1.0 for k, name in enumerate(CLASSES.names) if name in p] for p in prompts]
    return torch.tensor([[99.0 if len(a) > 1 else sum(a), 1.0] for a in animals])


def of_text(x, sigma, cond):
    """Asked for one phrase, its columns; asked for nothing, nothing; asked for several, noise."""
    label = (cond[:, 0] - 1) % 4
    spoiled = -7.0 * (cond[:, 0] == 99)[:, None, None, None]
    return torch.zeros_like(x) + painted(label)[:, None, None] + spoiled


CONDITIONERS_WITHOUT_PARTS = {
    "classes": (of_classes, CLASSES, (0, 2)),
    "class names": (of_classes, CLASSES, ("cat", "owl")),
    "phrases": (of_text, Phrases(encoded), ("a cat", "an owl")),
}


@pytest.mark.parametrize("case", CONDITIONERS_WITHOUT_PARTS)
def test_conditions_whose_cond_is_no_sum_are_kept_apart(case):
    denoiser, conditioner, asked = CONDITIONERS_WITHOUT_PARTS[case]
    local = LocalConditions(from_x0(denoiser, conditioner=conditioner), None, Strongest())
    cond = local.conditioner([asked, asked[1:]])
    assert cond.shape == (2, local.conditioner.features)
    x0 = local(X, SIGMA, cond)
    columns = torch.arange(16) % 3
    both = (columns == 0) * 1.0 + (columns == 2) * 3.0
    assert torch.equal(x0[0, 0], both.expand(16, 16))
    assert torch.equal(x0[1, 0], ((columns == 2) * 3.0).expand(16, 16))
    assert torch.equal(local(X, SIGMA, local.conditioner([(), ()])), torch.zeros_like(X))

    # Equation 10 of the repaired model, by hand: each condition acts on its own columns.
    acts = influence(local, X, 1.0, local.conditioner, asked)
    assert torch.equal(acts[0, 5], (columns == 0) * 1.0)
    assert torch.equal(acts[1, 5], (columns == 2) * 3.0)
    report = audit(local, X, [asked, asked[:1]], sigmas=[1.0])
    assert report.overlap[0].value == 0
    assert {row.intervention for row in report.rows()} == {"own"}
    assert "have no places: the share of influence near a place is left out" in report.table()


def test_scores_of_classes_are_composed_although_a_set_of_two_cannot_be_asked_for():
    cond = ComposedScores(of_classes, CLASSES).conditioner([(0, 2)])
    x0 = ComposedScores(of_classes, CLASSES)(X[:1], SIGMA[:1], cond)
    assert torch.equal(
        x0, of_classes(X[:1], 1, CLASSES([(0,)])) + of_classes(X[:1], 1, CLASSES([(2,)]))
    )
    with pytest.raises(InputError, match="takes one class, not"):
        CLASSES([(0, 2)])


def test_conditions_kept_apart_have_the_places_that_their_conditioner_says():
    @dataclass(frozen=True)
    class Slots:
        """Cells again, of which several cannot be asked for at once, and without `split`."""

        features: int = 64

        def __call__(self, condition_sets, seed=0):
            assert all(len(some) < 2 for some in condition_sets)
            return Cells()(condition_sets)

        def left_out(self, condition_set, seed=0):
            return Cells().left_out(condition_set)

        def places(self, parts):
            return Cells().places(parts)

    asked = ((3.5 / 8, 3.5 / 8), (5.5 / 8, 3.5 / 8))
    local = LocalConditions(code, Slots())
    x0 = local(X, SIGMA, local.conditioner([asked, ()]))
    assert torch.equal(x0, LocalConditions(code, Cells())(X, SIGMA, asked_of_both()))
    several = LocalConditions(code, Slots(), Within())
    with pytest.raises(InputError, match="several conditions at once"):
        several(X, SIGMA, several.conditioner([asked, ()]))


def test_words_of_one_prompt_and_of_a_vocabulary_are_repaired_too():
    columns = torch.arange(16) % 3
    both = (columns == 0) * 1.0 + (columns == 2) * 3.0
    prompt = WordsOf("a cat with an owl", encoded)
    local = LocalConditions(of_text, prompt, Strongest())
    assert local.conditioner.noun == "word"
    x0 = local(X, SIGMA, local.conditioner([prompt.all, ()]))
    assert torch.equal(x0[0, 0, 5], both) and (x0[1] == 0).all()

    def of_words(x, sigma, cond):
        """The cond of words counts them, and that of nothing is zero."""
        return of_classes(x, sigma, torch.cat([cond, 1 - cond.amax(1, keepdim=True)], 1))

    words = Vocabulary(("cat", "dog", "owl"))
    cond = words([("cat", "owl"), ("owl",)])
    assert torch.equal(LocalConditions(of_words, words, Strongest())(X, SIGMA, cond)[0, 0, 5], both)


def test_a_model_of_one_class_draws_two_when_repaired():
    def pure(x, sigma, cond):
        return of_classes(x, sigma, cond) / 3

    model = from_x0(pure, conditioner=CLASSES, shape=(3, 16, 16))
    (image,) = draw(LocalConditions(model, neighbourhoods=Strongest()), [("cat", "owl")], steps=4)
    (cat, owl) = draw(model, [("cat",), ("owl",)], steps=4)
    columns = torch.arange(16) % 3
    assert (image[:, columns == 0] == cat[:, columns == 0]).all()
    assert (image[:, columns == 2] == owl[:, columns == 2]).all()


def test_what_cannot_be_kept_apart_is_one_sentence():
    local = LocalConditions(of_classes, CLASSES, Strongest())
    no_null = LocalConditions(of_classes, Classes(3))
    colors = ColorCounts()
    red = colors([["red"]] * 2)
    for wrong, words in (
        (lambda: local(X, SIGMA, CLASSES([(0,), (2,)])), "take wrapped.conditioner"),
        (lambda: local.conditioner([(0,) * 13]), "at most 12 conditions"),
        (lambda: local.conditioner(["cat"]), "not 'cat'"),
        (lambda: local.conditioner([("cow",)]), "there is no class 'cow'"),
        (lambda: no_null.conditioner([(0,)]), "cannot be left out"),
        (lambda: LocalConditions(lambda x, s, c: x, colors)(X, SIGMA, red), "have no places"),
    ):
        with pytest.raises(InputError, match=words):
            wrong()
    near = LocalConditions(of_classes, CLASSES)
    with pytest.raises(InputError, match="have no places"):
        near(X, SIGMA, near.conditioner([(0,), ()]))


def test_each_name_is_an_intervention_whose_rows_know_it():
    class Named:
        conditioner = Cells()
        shape = (1, 16, 16)
        about = MappingProxyType({"run": "code"})

        def __call__(self, x, sigma, cond):
            return code(x, sigma, cond)

    for name, neighbourhoods in INTERVENTIONS.items():
        wrapped = intervene(Named(), name)
        assert wrapped.about["intervention"] == name and wrapped.about["run"] == "code"
        twin = LocalConditions(code, Cells(), neighbourhoods)
        assert torch.equal(wrapped(X, SIGMA, asked_of_both()), twin(X, SIGMA, asked_of_both()))
    narrow = intervene(Named(), "local", radius=0.125)
    assert narrow.about == {"run": "code", "intervention": "local", "radius": 0.125}
    assert (narrow(X, SIGMA, asked_of_both())[0, 0, 6] > 0).sum() == 8  # twice four pixels


def test_rows_of_one_name_and_other_numbers_are_told_apart():
    assert all("setting" not in one.about for one in INTERVENTIONS.values())
    near = {"intervention": "guided", "radius": 0.1875}
    assert Nearest(guidance=1.5).about == {**near, "setting": "guidance 1.5"}
    assert Nearest(smooth=0.03).about["setting"] == "smooth 0.03"
    wide = Nearest(lambda sigma: 0.2, guidance=2.0)
    assert wide.about == {"intervention": "guided"}  # not annealed, which has no guidance
    assert Whole(1.5).about == {"intervention": "everything", "setting": "guidance 1.5"}


@pytest.mark.parametrize("scale", [0.5, 1.5, 2.0])
def test_guidance_inside_an_intervention_is_guidance_of_its_passes(scale):
    """The twin guides the denoiser itself, at twice the passes."""
    cond = torch.cat([asked_of_both(), torch.zeros_like(asked_of_both())[:1]])
    x, sigma = torch.cat([X, X[:1]]), torch.cat([SIGMA, SIGMA[:1]])
    for radius in (0.1875, 0.3):
        one = LocalConditions(code, Cells(), Nearest(radius, guidance=scale))
        twin = LocalConditions(Guided(code, scale), Cells(), Nearest(radius))
        assert torch.allclose(one(x, sigma, cond), twin(x, sigma, cond), atol=1e-5)
    whole = LocalConditions(code, Cells(), Whole(scale))(x, sigma, cond)
    assert torch.allclose(whole, Guided(code, scale)(x, sigma, cond), atol=1e-5)


def test_an_intervention_that_does_not_exist_or_has_no_radius_is_named():
    for asked, words in (
        (("nearby",), "no intervention 'nearby'; the interventions are local, smooth"),
        (("own", 0.2), "'own' has no radius"),
        (("annealed", 0.2), "'annealed' has no radius"),
        (("local", 1.5), "1.5 is not above 0 and at most 1"),
    ):
        with pytest.raises(InputError, match=words):
            intervene(code, *asked)
    with pytest.raises(InputError, match="give conditioner="):
        intervene(code, "local")(X, SIGMA, asked_of_both())
