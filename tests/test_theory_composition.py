"""Lemma 1, its converse, and where it fails; sampling with the local score; explicit
composition."""

import pytest
import torch

from composcope.diffusion.sample import noise_levels, sample
from composcope.errors import InputError
from composcope.theory import composition as C
from composcope.theory.mixture import gaussian
from composcope.theory.relaxation import Coupled


def points(n: int, count: int = 6) -> torch.Tensor:
    return torch.randn(count, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)


@pytest.mark.parametrize("seed", range(6))
def test_the_local_score_is_the_score_of_a_factorised_composition(seed):
    p = C.random_composition(seed)
    for J in C.all_subsets(3):
        for sigma in (0.0, 0.3, 5.0):
            x = (1 + sigma) * points(p.n)
            torch.testing.assert_close(
                C.local_score(p, x, sigma, J), p.given(J).score(x, sigma), atol=1e-10, rtol=0
            )


def test_given_is_equation_2():
    p = C.random_composition(1, factorised=False)
    x, J = points(p.n), frozenset({0, 2})
    rest = C.outside_blocks(p.n, [p.blocks[0], p.blocks[2]])
    expected = p.empty.marginal(rest).log_density(x[:, rest])
    for j in J:
        expected = expected + p.asked[j].log_density(x[:, list(p.blocks[j])])
    torch.testing.assert_close(p.given(J).log_density(x), expected, atol=1e-10, rtol=0)


def test_without_the_factorised_background_definition_2_holds_and_lemma_1_does_not():
    p = C.random_composition(1, factorised=False)
    gap = C.local_score(p, points(p.n), 0.3, C.NOTHING) - p.given(C.NOTHING).score(points(p.n), 0.3)
    assert gap.abs().max() > 0.1


def test_the_local_score_of_any_conditional_integrates_to_a_composition():
    p = Coupled(0.8)  # far from a CPC
    for J in C.all_subsets(3):
        phat = C.induced(p, J)
        x = points(p.n)
        gap = phat.log_density(x, 0.5) - phat.log_density(torch.zeros(1, p.n).double(), 0.5)
        torch.testing.assert_close(C.line_integral(p, x, 0.5, J), gap, atol=1e-9, rtol=0)
        # Definition 2 for phat: what is not asked for is as under nothing, what is asked for as
        # under it alone.
        for j in range(3):
            block = p.blocks[j]
            alone = C.induced(p, frozenset({j}) & J).marginal(block).log_density(x[:, list(block)])
            torch.testing.assert_close(
                phat.marginal(p.blocks[j]).log_density(x[:, list(p.blocks[j])]), alone
            )


def test_a_local_learner_of_pairs_draws_any_number_of_objects():
    truth = C.object_images(side=2)
    learned = C.learn_from_pairs(truth)
    cond = torch.tensor([[j < K for j in range(4)] for K in range(5) for _ in range(8)]).float()
    drawn = sample(C.local(learned), range(len(cond)), (1, 4, 4), cond, noise_levels(16))
    for image, asked in zip(drawn.flatten(1), cond, strict=True):
        means = torch.stack([image[list(block)].mean() for block in truth.blocks])
        torch.testing.assert_close(means.abs(), asked, atol=0.3, rtol=0)


def test_two_blocks_are_too_few_to_learn_from_pairs():
    with pytest.raises(InputError, match="pairs out of 2 blocks"):
        C.learn_from_pairs(C.random_composition(0, count=2))


def test_the_denoisers_are_the_formula_row_by_row():
    p = C.random_composition(2)
    x, sigma = points(p.n).view(-1, 1, 1, p.n), torch.linspace(0.1, 3, 6)
    cond = torch.tensor([[1, 0, 0], [0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 0, 0]]).float()
    for build in (C.exact, C.local):
        denoised = build(p)(x, sigma, cond)
        for i, row in enumerate(cond):
            law, flat = p.given(frozenset(row.nonzero().flatten().tolist())), x[i].flatten(1)
            alone = flat + sigma[i].item() ** 2 * law.score(flat, sigma[i].item())
            torch.testing.assert_close(denoised[i].flatten(1), alone, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(C.exact(p)(x, sigma, None)[1], C.exact(p)(x, sigma, 0 * cond)[1])


def test_explicit_composition_is_exact_for_factorised_conditionals():
    p = C.random_composition(4)
    parts, x = [p.given(frozenset({j})) for j in (0, 2)], points(p.n)
    composed = C.projective_score(parts, p.given(C.NOTHING), x, 0.4)
    torch.testing.assert_close(
        composed, p.given(frozenset({0, 2})).score(x, 0.4), atol=1e-9, rtol=0
    )
    wrong = C.projective_score(parts, gaussian([0.0] * p.n, 1.0), x, 0.4)
    assert (wrong - composed).abs().max() > 0.1
