import numpy as np
import pytest
import torch
from torch import nn

from composcope.errors import InputError
from composcope.features.capture import Means, capture
from composcope.features.probe import cosines, gram, replicates, summary
from composcope.results.estimate import weights
from composcope.theory.composition import NOTHING, random_composition
from composcope.theory.feature_space import FeatureComposition
from composcope.theory.feature_space import mean_cosines as exact


def similarity(means, background, categories=None, resamples=200):
    return summary(replicates(means, background, resamples), categories)


def test_matrix_is_the_definition():
    torch.manual_seed(0)
    means, background = torch.randn(4, 6, 10), torch.randn(6, 10)
    d = means.mean(1) - background.mean(0)
    want = torch.nn.functional.cosine_similarity(d[:, None], d[None], dim=-1)
    got = similarity(means, background, ["a", "a", "b", "b"])
    np.testing.assert_allclose(got.matrix, want.numpy(), atol=1e-6)
    between = want[:2, 2:].mean()
    within = (want[0, 1] + want[2, 3]) / 2
    values = [got.between.value, got.within.value, got.ratio.value, got.gap.value]
    np.testing.assert_allclose(
        values, [between, within, within / between, within - between], atol=1e-6
    )


def test_resampled_cosines_are_those_of_resampled_means():
    torch.manual_seed(1)
    means, background = torch.randn(3, 5, 7), torch.randn(5, 7)
    w = torch.from_numpy(weights(5, 20))
    got = cosines(gram(means, background), w)
    for r in (0, 7, 20):
        d = torch.einsum("a,naf->nf", w[r], (means - background).double())
        want = torch.nn.functional.cosine_similarity(d[:, None], d[None], dim=-1)
        torch.testing.assert_close(got[r], want)


def test_intervals_cover_the_truth():
    """95 % intervals of a known cosine of 1/2, over 100 studies of 20 groups each: coverage within
    4 deviations."""
    truth, hits = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.75**0.5, 0.0]]), 0
    for study in range(100):
        chance = torch.Generator().manual_seed(study)
        background = torch.randn(20, 3, generator=chance)
        means = truth[:, None] + background + 0.5 * torch.randn(2, 20, 3, generator=chance)
        found = similarity(means, background, resamples=300)
        hits += found.between.low <= 0.5 <= found.between.high
    assert 84 <= hits <= 100


def test_without_categories_every_concept_is_its_own():
    found = similarity(torch.eye(3)[:, None].expand(3, 2, 3), torch.zeros(2, 3))
    assert found.within is None and found.ratio is None and found.between.value == 0
    with pytest.raises(InputError, match="2 groups"):
        similarity(torch.zeros(2, 1, 3), torch.zeros(1, 3))


def test_composites_stay_out_of_the_summary():
    means = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])[:, None].expand(3, 2, 2)
    found = similarity(means, torch.zeros(2, 2), ["a", "b"])
    assert found.between.value == 0
    np.testing.assert_allclose(found.matrix[2, :2], 0.5**0.5)


@pytest.mark.parametrize("basis", ["features", "pixels"])
def test_feature_composition_is_orthogonal_in_its_own_basis_only(basis: str):
    """An F-CPC seen through hooks on z = A x: the cosines are those of theory, zero in z and not in
    x."""
    skewed = torch.randn(7, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    toy = FeatureComposition(random_composition(5), skewed)
    A = nn.Linear(toy.n, toy.n, bias=False)
    A.weight.data = toy.A.float()
    network = nn.Sequential(nn.Identity(), A)
    layer = {"pixels": "0", "features": "1"}[basis]
    conditions = [NOTHING, *(frozenset({j}) for j in range(len(toy.blocks)))]

    def mean(J: frozenset) -> torch.Tensor:
        kept = [Means() for _ in range(4)]
        for group, means in enumerate(kept):
            x = toy.given(J).sample(20000, seed=group).float()
            with capture(network, [layer], means.add):
                network(x)
        return torch.stack([means()[layer] for means in kept])

    background, *means = [mean(J) for J in conditions]
    got = similarity(torch.stack(means), background).matrix
    want = (exact(toy.features) if basis == "features" else exact(toy)).numpy()
    np.testing.assert_allclose(got, want, atol=0.05)
    off = ~np.eye(len(want), dtype=bool)
    assert (
        (np.abs(want[off]) < 1e-9).all() if basis == "features" else (np.abs(want[off]) > 0.1).any()
    )
