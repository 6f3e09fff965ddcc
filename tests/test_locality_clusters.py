"""Clusters of pixels and of words against what is known: regions that were put there."""

import numpy as np
import pytest
import torch

from composcope.adapters import Classes, Phrases
from composcope.errors import InputError
from composcope.features.words import WordGroups, Words, alike
from composcope.locality import INTERVENTIONS, LocalConditions
from composcope.locality.clusters import clusters, regions
from composcope.locality.neighbourhoods import Asked, Clusters, all_and_left_out
from composcope.scenes.condition import ColorCounts

CENTRES = ((3, 3), (3, 12), (12, 4), (12, 12))  # rows and columns of 16 x 16 pixels
X, SIGMA = torch.zeros(1, 3, 16, 16), torch.ones(1)


def bumps(leak: float = 0.0) -> torch.Tensor:
    """How condition k acts: around its centre, and a little everywhere."""
    rows, columns = np.mgrid[:16, :16]
    near = [np.exp(-((rows - r) ** 2 + (columns - c) ** 2) / 4) for r, c in CENTRES]
    return torch.from_numpy(np.stack(near)).float() + leak


def test_regions_are_where_conditions_act():
    """In any order of the conditions, and when one acts a hundred times as much as the others."""
    acts = bumps(leak=0.02)
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        for scale in (1.0, 100.0):
            found = regions(acts[order] * torch.tensor([scale, 1, 1, 1])[:, None, None])
            assert [int(found[CENTRES[k]]) for k in order] == [0, 1, 2, 3]
            assert found.shape == (16, 16) and set(found.unique().tolist()) == {0, 1, 2, 3}


def test_two_conditions_that_want_one_place_get_different_regions():
    """The one that acts there alone keeps it; the other goes where it acts as well."""
    near = bumps()
    found = regions(torch.stack([near[0], near[0] + 0.8 * near[3]]))
    assert found[CENTRES[0]] == 0 and found[CENTRES[3]] == 1


def test_clusters_of_even_mass_are_compact_and_the_same_again():
    found = clusters(np.ones((12, 18)), 6)
    areas = np.bincount(found.ravel())
    assert len(areas) == 6 and areas.min() > 0.5 * areas.mean()
    assert (found == clusters(np.ones((12, 18)), 6)).all()
    assert clusters(np.zeros((4, 4)), 2).shape == (4, 4)  # where nothing acts, anything will do


class Painter:
    """A model that paints colour k around its centre, and a leak of every colour everywhere."""

    conditioner = ColorCounts()
    shape = (3, 16, 16)
    leak = 0.02

    def __call__(self, x, sigma, cond):
        return x + torch.einsum("bk,khw->bhw", cond[:, :4], bumps(self.leak))[:, None]


def test_each_condition_counts_twice_in_its_region_alone():
    """In closed form: x0 = sum of all bumps + the bump of the region."""
    model = Painter()
    cond = torch.zeros(1, model.conditioner.features)
    cond[:, :4] = 1
    x0 = LocalConditions(model, neighbourhoods=Clusters())(X, SIGMA, cond)
    acts = bumps(model.leak)
    own = regions(acts)
    expected = acts.sum(0) + acts.gather(0, own[None])[0]
    torch.testing.assert_close(x0, expected.expand(1, 3, 16, 16))
    strong = LocalConditions(model, neighbourhoods=Clusters(strength=0.0))(X, SIGMA, cond)
    torch.testing.assert_close(strong, model(X, SIGMA, cond))
    everywhere = LocalConditions(model, neighbourhoods=INTERVENTIONS["everywhere"])
    torch.testing.assert_close(everywhere(X, SIGMA, cond), 2 * model(X, SIGMA, cond))


@pytest.mark.parametrize("name", ["clusters", "everywhere"])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_weights_sum_to_one(name, count):
    near = INTERVENTIONS[name]
    asked = Asked(torch.eye(8)[:count], None, 1.0, (12, 10))
    subsets = near.subsets(asked)
    assert torch.equal(subsets, all_and_left_out(count, torch.device("cpu")))
    assert subsets.sum(1).tolist() == [count] + [count - 1] * count
    weights = near.weights(asked, subsets, torch.randn(1 + count, 3, 12, 10))
    torch.testing.assert_close(weights.sum(0), torch.ones(12, 10))
    assert weights.shape == (1 + count, 12, 10)


# ----------------------------------------------------------------------------
# Words.

PROMPT = "a red cube on the left and a blue sphere on the right"


def encoded(prompts):
    """No sum of parts: a colour is painted where the place of its phrase is, if both are said."""
    pairs = (("red", "left"), ("blue", "right"))
    return torch.tensor([[float(a in p and b in p) for a, b in pairs] for p in prompts])


LEFT, RIGHT = bumps()[0] > 0.1, bumps()[1] > 0.1


def two_discs(x, sigma, cond):
    """One disc is painted for the first, another for the second."""
    shades = cond[:, :1, None] * LEFT + cond[:, 1:2, None] * RIGHT
    return torch.zeros_like(x) + shades[:, None]


def test_words_that_act_alike_are_a_group():
    words = Words(PROMPT, encoded)
    left, right = torch.zeros(2, 8, 8).unbind()
    left[:, :4], right[:, 4:] = 1.0, 2.0
    maps = torch.stack([left, 3 * left, left, right, right / 5, right]) + 0.01 * torch.rand(6, 8, 8)
    groups = alike(words.all, maps, 2)
    said = [[word.text for word in group] for group in groups]
    assert said == [["red", "cube", "left"], ["blue", "sphere", "right"]]
    assert alike(words.all[:1], maps[:1], 1) == [words.all[:1]]
    assert alike(words.all, torch.zeros(6, 8, 8), 2) == [words.all]  # none acts: all alike


def test_groups_of_words_are_left_out_together_and_count_twice_where_they_act():
    grouped = WordGroups(PROMPT, encoded)
    red, cube, left, blue, sphere, right = grouped.all
    groups = [(red, cube, left), (blue, sphere, right)]
    assert torch.equal(grouped.left_out(groups), torch.tensor([[1.0, 1], [0, 1], [1, 0]]))
    local = LocalConditions(two_discs, grouped, Clusters())
    x0 = local(X, SIGMA, local.conditioner([groups]))
    torch.testing.assert_close(x0, 2.0 * (LEFT | RIGHT).expand_as(X))


def test_phrases_count_twice_where_they_act():
    phrases = Phrases(encoded)
    local = LocalConditions(two_discs, phrases, Clusters())
    said = ["a red cube on the left", "a blue sphere on the right"]
    x = X.expand(3, -1, -1, -1)
    x0 = local(x, torch.ones(3), local.conditioner([said, said[:1], []]))
    expected = torch.stack([2.0 * (LEFT | RIGHT), 2.0 * LEFT, 0.0 * LEFT])
    torch.testing.assert_close(x0, expected[:, None].expand_as(x))


def test_what_has_no_clusters_is_one_sentence():
    local = LocalConditions(two_discs, Classes(3, null=3), Clusters())
    with pytest.raises(InputError, match="takes one class"):
        local.conditioner([(0, 2)])
    with pytest.raises(InputError, match=r"take wrapped\.conditioner"):
        local(X, SIGMA, torch.zeros(1, 4))


def test_gradients_pass_through_clusters():
    """Regions do not change with x from pixel to pixel, so what they weigh is differentiated."""
    acts = torch.rand(3, 8, 8, dtype=torch.float64)
    own = regions(acts)
    weighed, back = torch.func.vjp(lambda x: x * regions(x.abs()), acts)
    assert torch.equal(weighed, acts * own)
    assert torch.equal(back(torch.ones_like(acts))[0], own.expand(3, -1, -1).double())
