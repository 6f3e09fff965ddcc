"""Are concepts disentangled? Cosines between mean difference vectors, with intervals over samples.

    d_i = mu_i - mu_b,      C_ij = <d_i, d_j> / (|d_i| |d_j|)            (section 3.2, equation 3)

Orthogonal d_i are necessary for a composition in this basis, not sufficient (version 3, Lemma 2).
Samples come in groups that share their seeds across concepts; with a group mean delta_ia = mu_ia -
mu_ba and weights w of the groups, <d_i, d_j> = w^T K_ij w with K_ijab = <delta_ia, delta_jb>, so
one Gram matrix serves every resampling of groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from composcope.errors import InputError
from composcope.results.estimate import RESAMPLES, Estimate, estimate, weights

Means = Float[Tensor, "n groups features"]
Background = Float[Tensor, "groups features"]
Grams = Float[Tensor, "n n groups groups"]
Cosines = Float[Tensor, "one_and_resamples n n"]


@dataclass(frozen=True)
class Similarity:
    """Cosines at one layer and noise level; without categories every concept is its own."""

    matrix: Float[np.ndarray, "n n"]
    between: Estimate
    within: Estimate | None = None
    ratio: Estimate | None = None  # of version 3, figure 5; it blows up where between -> 0
    gap: Estimate | None = None  # within - between


def gram(means: Means, background: Background) -> Grams:
    """K of the header, in double precision: d is a small difference of large means."""
    delta = means.double() - background.double()
    return torch.einsum("iaf,jbf->ijab", delta, delta)


def cosines(K: Grams, w: Float[Tensor, "one_and_resamples groups"]) -> Cosines:
    """Equation 3 for each weighting of the groups; where a concept is the background, 0."""
    inner = torch.einsum("ra,ijab,rb->rij", w, K, w)
    norm = inner.diagonal(dim1=1, dim2=2).clamp(min=0).sqrt()
    return (inner / (norm[:, :, None] * norm[:, None, :]).clamp(min=1e-300)).clamp(-1, 1)


def replicates(means: Means, background: Background, resamples: int = RESAMPLES) -> Cosines:
    """Cosine matrices: of all samples, then of resampled groups, the same for every layer."""
    groups = means.shape[1]
    if groups < 2:
        raise InputError(f"intervals over samples need at least 2 groups of samples, not {groups}")
    return cosines(gram(means, background), torch.from_numpy(weights(groups, resamples)))


def summary(
    cosine: Cosines, categories: Sequence[str] | None = None, n: int | None = None
) -> Similarity:
    """The matrix, and means of its pairs within and between categories; n samples are behind them.

    categories: of the first concepts; those beyond (composites) are in the matrix and not in the
    means."""
    matrix = cosine[0].numpy()
    names = list(categories) if categories is not None else list(map(str, range(len(matrix))))
    same = torch.tensor([[a == b for b in names] for a in names])
    pairs = torch.ones_like(same).triu(diagonal=1)
    chosen = cosine[:, : len(names), : len(names)].numpy()
    between = chosen[:, pairs & ~same].mean(1)
    if not (pairs & same).any():
        return Similarity(matrix, estimate(between, n))
    within = chosen[:, pairs & same].mean(1)
    found = (between, within, within / between, within - between)
    return Similarity(matrix, *(estimate(one, n) for one in found))
