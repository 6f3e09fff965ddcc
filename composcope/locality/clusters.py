"""Regions of an image, one a condition, from where each condition acts: clusters of pixels (k-means
of their places, weighed by influence), given to conditions one to one."""

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.cluster.vq import vq
from scipy.optimize import linear_sum_assignment
from torch import Tensor

ROUNDS = 10  # of Lloyd's; the centres hardly move after
Mass = Float[np.ndarray, "height width"]


def regions(acts: Float[Tensor, "condition height width"]) -> Int[Tensor, "height width"]:
    """The condition whose region each pixel is in: compact regions, assigned to conditions so that
    the shares of their influence in their own regions add up to the most."""
    strength = np.array(acts.double().tolist())  # not .numpy(), which gradients do not pass
    count = len(strength)
    cluster = clusters(strength.sum(0), count)
    whole = strength.sum((1, 2))[:, None]
    inside = np.stack([strength[:, cluster == one].sum(1) for one in range(count)], axis=1)
    shares = np.divide(inside, whole, out=np.zeros_like(inside), where=whole > 0)
    _, condition = linear_sum_assignment(shares.T, maximize=True)
    return torch.from_numpy(condition[cluster]).to(acts.device)


def clusters(mass: Mass, count: int) -> Int[np.ndarray, "height width"]:
    """Which of `count` compact clusters each pixel is in: Lloyd's k-means of places (u, v), each
    with its mass. The same mass gives the same clusters."""
    height, width = mass.shape
    rows, columns = np.mgrid[:height, :width]
    places = np.stack([(columns + 0.5) / width, (rows + 0.5) / height], axis=-1).reshape(-1, 2)
    weight = mass.ravel()
    centres = spread_out(places, weight, count)
    for _ in range(ROUNDS):
        own = vq(places, centres)[0]
        whole = np.bincount(own, weight, count)
        sums = [np.bincount(own, weight * axis, count) for axis in places.T]
        held = whole > 0
        centres[held] = (np.stack(sums, axis=1) / np.where(held, whole, 1)[:, None])[held]
    return vq(places, centres)[0].reshape(height, width)


def spread_out(
    places: Float[np.ndarray, "pixel 2"], weight: Float[np.ndarray, " pixel"], count: int
) -> Float[np.ndarray, "centre 2"]:
    """Where k-means begins: at the greatest mass, then where mass is far from all chosen ones."""
    chosen = places[[weight.argmax()]]
    while len(chosen) < count:
        away = vq(places, chosen)[1] ** 2
        chosen = np.concatenate([chosen, places[[(weight * away).argmax()]]])
    return chosen
