"""Neighbourhoods: which conditions L_i a pixel i hears (definition 1), by their places or by where
the model itself says that they act.

Radii and widths are in image sides: an object is as large whatever the grid that it is asked on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from composcope.diffusion.places import offsets
from composcope.errors import InputError
from composcope.locality.clusters import regions

Radius = float | Callable[[float], float]  # in image sides; or a function of the noise level
Subsets = Bool[Tensor, "subset condition"]
Weights = Float[Tensor, "subset height width"]
Passes = Float[Tensor, "subset channel height width"]  # what the denoiser makes of each subset


@dataclass(frozen=True)
class Asked:
    """What one image is asked: the conditions, their noise level, and the size of the image."""

    parts: Float[Tensor, "condition features"]
    conditioner: Any  # one without places serves neighbourhoods that need none
    sigma: float
    size: tuple[int, int]

    def offsets(self) -> Float[Tensor, "2 condition height width"]:
        """How far each pixel's centre is from each condition's place, down and across."""
        says = hasattr(self.conditioner, "places")
        if not says or not getattr(self.conditioner, "has_places", True):
            raise InputError(
                "these conditions have no places to be near to; take neighbourhoods=Strongest(), "
                "on a command line --intervention own"
            )
        return offsets(self.conditioner.places(self.parts).to(self.parts), self.size)

    def radius(self, radius: Radius) -> float:
        return radius(self.sigma) if callable(radius) else radius


@runtime_checkable
class Neighbourhoods(Protocol):
    """Which subsets of the conditions are denoised with, and how much each pixel takes of each.

    Weights sum to 1. `about` are the row coordinates of what is measured with them: intervention
    and radius."""

    @property
    def about(self) -> Mapping[str, Any]: ...

    def subsets(self, asked: Asked) -> Subsets: ...

    def weights(self, asked: Asked, subsets: Subsets, x0: Passes) -> Weights: ...


class Named:
    """Neighbourhoods of an intervention that has a name, and a radius where it is a number.

    Where another of its numbers is not the usual one, the rows' `setting` says so."""

    name: str

    @property
    def about(self) -> Mapping[str, Any]:
        radius = getattr(self, "radius", None)
        known: dict[str, Any] = {}
        if radius is not None and not callable(radius):
            known["radius"] = radius
        if unusual := self.unusual():
            known["setting"] = unusual
        return {"intervention": self.name, **known}

    def unusual(self) -> str:
        """The numbers beside the radius that this name usually has otherwise."""
        usual: Any = INTERVENTIONS.get(self.name, self)
        names = [one.name for one in fields(self) if one.name != "radius"]  # type: ignore[arg-type]
        numbers = {name: getattr(self, name) for name in names}
        off = (f"{name} {own}" for name, own in numbers.items() if own != getattr(usual, name))
        return ", ".join(off)


class Singles(Named):
    """Denoised with no condition, and with each alone: a pass a condition, and one more."""

    def subsets(self, asked: Asked) -> Subsets:
        return none_and_singles(len(asked.parts), asked.parts.device)


@dataclass(frozen=True)
class Nearest(Singles):
    """L_i is the nearest condition, if it is within `radius`, else none.

    For models that only ever saw one label. `smooth` blurs the borders of the neighbourhoods (0:
    hard). Under `guidance` (1: none) a pixel goes beyond what its condition says, at no cost:

        x0(i) = D(x, {})(i) + guidance (D(x, {k}) - D(x, {}))(i)      (Ho and Salimans 2022)"""

    radius: Radius = 0.1875
    smooth: float = 0.0
    guidance: float = 1.0

    @property
    def name(self) -> str:  # type: ignore[override]
        if self.guidance != 1:
            return "guided"
        if callable(self.radius):
            return "annealed"
        return "smooth" if self.smooth else "local"

    def weights(self, asked: Asked, subsets: Subsets, x0: Passes) -> Weights:
        nearest = nearest_within(asked.offsets(), asked.radius(self.radius))
        weights = blurred_weights(one_subset(nearest, len(subsets)), self.smooth)
        return beyond_nothing(weights, self.guidance)


@dataclass(frozen=True)
class Whole(Named):
    """No neighbourhoods: guidance on the whole set, at every pixel. For comparison."""

    name = "everything"
    guidance: float = 2.0

    def subsets(self, asked: Asked) -> Subsets:
        count, device = len(asked.parts), asked.parts.device
        return torch.stack([torch.zeros(count), torch.ones(count)]).bool().to(device)

    def weights(self, asked: Asked, subsets: Subsets, x0: Passes) -> Weights:
        all_of_it = torch.ones(asked.size, dtype=torch.long, device=x0.device)
        return beyond_nothing(one_subset(all_of_it, 2), self.guidance)


@dataclass(frozen=True)
class Within(Named):
    """L_i is every condition within `radius`: as many passes as there are different sets."""

    name = "within"
    radius: Radius = 0.1875
    smooth: float = 0.0

    def different(self, asked: Asked) -> tuple[Subsets, Tensor]:
        """The different sets, and which of them each pixel has."""
        # Neighbourhoods are squares, as the patches of section E.3 are.
        members = (asked.offsets().amax(0) < asked.radius(self.radius)).flatten(1).T
        # One more column, for all: unique wants something to compare when nothing is asked.
        sets, which = F.pad(members, (1, 0)).unique(dim=0, return_inverse=True)
        return sets[:, 1:], which.view(asked.size)

    def subsets(self, asked: Asked) -> Subsets:
        return self.different(asked)[0]

    def weights(self, asked: Asked, subsets: Subsets, x0: Passes) -> Weights:
        return blurred_weights(one_subset(self.different(asked)[1], len(subsets)), self.smooth)


@dataclass(frozen=True)
class Strongest(Singles):
    """L_i is the condition that acts most on pixel i of this very image: no places are needed.

    Its influence is that of equation 10 on the condition alone, || D(x, {k}) - D(x, {}) ||; a pixel
    at which no condition has `share` of its own greatest influence goes without."""

    name = "own"
    share: float = 0.25
    smooth: float = 0.0

    def weights(self, asked: Asked, subsets: Subsets, x0: Passes) -> Weights:
        acts = (x0[1:] - x0[:1]).norm(dim=1)
        acts = acts / acts.amax((1, 2), keepdim=True).clamp_min(torch.finfo(x0.dtype).tiny)
        strongest = torch.cat([torch.full_like(x0[:1, 0], self.share), acts]).argmax(0)
        return blurred_weights(one_subset(strongest, len(subsets)), self.smooth)


@dataclass(frozen=True)
class Peaks(Singles):
    """Places that the model finds itself: a condition's is where it acts most on this very image,
    and L_i is the condition whose place is nearest, if it is within `radius`.

    It acts where D(x, {k}) differs from D(x, {}), blurred with a Gaussian of `width`. The most
    decided condition chooses first; no place is within `radius` of another while there is room."""

    name = "peaks"
    radius: float = 0.1875
    width: float = 0.05

    def weights(self, asked: Asked, subsets: Subsets, x0: Passes) -> Weights:
        nearest = nearest_within(offsets(self.places(x0), asked.size), self.radius)
        return one_subset(nearest, len(subsets))

    def places(self, x0: Passes) -> Float[Tensor, "condition 2"]:
        """The (u, v) of each condition: the centre of a pixel."""
        acts = blurred_weights((x0[1:] - x0[:1]).norm(dim=1), self.width)
        acts = acts / acts.mean((1, 2), keepdim=True).clamp_min(torch.finfo(x0.dtype).tiny)
        height, width = acts.shape[1:]
        found = acts.new_zeros(len(acts), 2)
        free = torch.ones_like(acts[:1], dtype=torch.bool)
        left = torch.ones(len(acts), dtype=torch.bool, device=acts.device)
        while bool(left.any()):
            open_places = free if bool(free.any()) else torch.ones_like(free)
            choice = acts.masked_fill(~(open_places & left[:, None, None]), -torch.inf)
            k, pixel = divmod(int(choice.argmax()), height * width)
            row, column = divmod(pixel, width)
            found[k] = torch.tensor([(column + 0.5) / width, (row + 0.5) / height])
            free = free & (offsets(found[k : k + 1], (height, width)).amax(0) >= self.radius)
            left[k] = False
        return found


@dataclass(frozen=True)
class Clusters(Named):
    """Regions that the model finds itself, one a condition, in which this one counts more:

        x0(i) = D(x, C)(i) + strength (D(x, C) - D(x, C without k))(i)       k: of the region of i

    Regions are clusters of pixels at which conditions act (equation 10). The whole set stays in
    every pass: where labels name all objects, a condition alone says that there is one object."""

    name = "clusters"
    strength: float = 1.0

    def subsets(self, asked: Asked) -> Subsets:
        return all_and_left_out(len(asked.parts), asked.parts.device)

    def weights(self, asked: Asked, subsets: Subsets, x0: Passes) -> Weights:
        weights = torch.zeros_like(x0[:, 0])
        if len(weights) > 1:
            own = regions((x0[:1] - x0[1:]).norm(dim=1))
            weights[1:] = -self.strength * one_subset(own, len(weights) - 1)
        weights[0] = 1 - weights[1:].sum(0)
        return weights


@dataclass(frozen=True)
class Everywhere(Clusters):
    """The same without regions, for comparison: every condition counts more at every pixel."""

    name = "everywhere"

    def weights(self, asked: Asked, subsets: Subsets, x0: Passes) -> Weights:
        weights = torch.full_like(x0[:, 0], -self.strength)
        weights[0] = 1 + self.strength * len(asked.parts)
        return weights


@dataclass(frozen=True)
class SummedScores(Singles):
    """No neighbourhoods: at every pixel the sum of single scores less (K - 1) background scores.

    Projective composition (Bradley et al. 2025, definition 5.1; Liu et al. 2022). Scores are affine
    in x0."""

    name = "composed"

    def weights(self, asked: Asked, subsets: Subsets, x0: Passes) -> Weights:
        weights = x0.new_ones(len(subsets), *asked.size)
        weights[0] = 1 - len(asked.parts)
        return weights


def annealed_radius(sigma: float) -> float:
    """From 1/8 of the image at no noise to 5/16 at much: scores are more local at low noise."""
    return 0.125 + 0.1875 * sigma / (1 + sigma)


# By the names that rows and command lines use; narrower and wider ones are `local` with a radius.
NEAREST = (Nearest(), Nearest(smooth=0.0625), Nearest(annealed_radius), Nearest(guidance=2.0))
FOUND = (Strongest(), Peaks(), Clusters(), Everywhere())
EVERY: tuple[Any, ...] = (*NEAREST, *FOUND, Within(), SummedScores(), Whole())
INTERVENTIONS: dict[str, Neighbourhoods] = {one.name: one for one in EVERY}


def none_and_singles(count: int, device: torch.device) -> Subsets:
    """The empty set, then each condition alone."""
    return torch.cat([torch.zeros(1, count), torch.eye(count)]).bool().to(device)


def all_and_left_out(count: int, device: torch.device) -> Subsets:
    """All conditions, then all but each."""
    return torch.cat([torch.ones(1, count), 1 - torch.eye(count)]).bool().to(device)


def beyond_nothing(weights: Weights, guidance: float) -> Weights:
    """Classifier-free guidance: away from the first subset, in which nothing is asked."""
    beyond = guidance * weights
    beyond[0] += 1 - guidance
    return beyond


def nearest_within(
    offsets: Float[Tensor, "2 condition height width"], radius: float
) -> Int[Tensor, "height width"]:
    """At every pixel 0, or 1 + the nearest condition if the pixel is in its square."""
    away = offsets.norm(dim=0).masked_fill(offsets.amax(0) >= radius, torch.inf)
    nothing = away.new_full((1, *away.shape[1:]), torch.finfo(away.dtype).max)
    return torch.cat([nothing, away]).argmin(0)


def one_subset(index: Tensor, classes: int) -> Weights:
    """All of one subset at every pixel, by its index."""
    return F.one_hot(index, classes).permute(2, 0, 1).float()


def blurred_weights(weights: Weights, width: float) -> Weights:
    """Each map blurred by a Gaussian of standard deviation `width`; their sum stays as it is."""
    for dim in (1, 2) if width else ():
        side = weights.shape[dim]
        apart = torch.arange(side, device=weights.device)
        kernel = torch.exp(-(((apart[:, None] - apart) / (side * width)) ** 2) / 2)
        kernel = (kernel / kernel.sum(1, keepdim=True)).to(weights)
        weights = (weights.transpose(dim, 2) @ kernel.T).transpose(dim, 2)
    return weights
