"""Denoisers forced to be local, without training: a wrapper around a Denoiser is a Denoiser.

    x0(i) = D(x, sigma, c_{L_i})(i)      pixel i sees only the conditions L_i near it (definition 1)

Pixels that share L_i share a pass; the passes of a batch are evaluated together."""

import inspect
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from composcope.diffusion.denoiser import Cond, Denoiser, Sigmas, Wrapper, X, check_denoiser
from composcope.errors import InputError, check_name
from composcope.locality.alone import EachAlone, EachLeftOut
from composcope.locality.neighbourhoods import (
    INTERVENTIONS,
    Asked,
    Clusters,
    Neighbourhoods,
    Subsets,
)
from composcope.tensors import distinct

Masks = Bool[Tensor, "cell height width"]


def intervene(denoiser: Denoiser, name: str, radius: float | None = None) -> "LocalConditions":
    """The denoiser with an intervention of this name; `radius` in image sides, where it has one."""
    check_name("intervention", name, INTERVENTIONS)
    neighbourhoods: Any = INTERVENTIONS[name]
    if radius is not None:
        if "radius" not in neighbourhoods.about:
            raise InputError(f"the intervention {name!r} has no radius to set")
        if not 0 < radius <= 1:
            raise InputError(
                f"a radius of {radius} is not above 0 and at most 1, the side of the image"
            )
        neighbourhoods = replace(neighbourhoods, radius=radius)
    return LocalConditions(denoiser, neighbourhoods=neighbourhoods)


def perhaps_intervene(model: Any, name: str | None, radius: float | None) -> Any:
    """The model as it is where no intervention is named, as on a command line without one."""
    if name is not None:
        return intervene(model, name, radius)
    if radius is not None:
        raise InputError("--radius is of an intervention: give --intervention local as well")
    return model


def check_neighbourhoods(given: Any) -> None:
    if inspect.isclass(given) or not isinstance(given, Neighbourhoods):
        kind = getattr(given, "__name__", repr(given))
        raise InputError(
            f"LocalConditions: neighbourhoods are such as Nearest() or Strongest(), not {kind}"
        )
    radius = getattr(given, "radius", 1.0)
    if not callable(radius) and not (isinstance(radius, int | float) and radius > 0):
        raise InputError(f"LocalConditions: a radius is above 0, in image sides, not {radius!r}")
    guidance = getattr(given, "guidance", 1.0)
    if not isinstance(guidance, int | float) or not math.isfinite(guidance):
        raise InputError(f"LocalConditions: guidance is a number, 1 for none, not {guidance!r}")


class LocalConditions(Wrapper):
    """A denoiser with local conditions: each pixel is given only the conditions near it. It works
    at sampling time and needs no training.

    conditioner: any, if not the denoiser's own. Where cond is no sum of parts (`split`), what is
        called takes the cond of its own `conditioner`, which keeps each condition apart.
    rows: how many passes go through the denoiser at a time."""

    def __init__(
        self,
        denoiser: Denoiser,
        conditioner: Any = None,
        neighbourhoods: Neighbourhoods | None = None,
        rows: int = 256,
    ):
        check_denoiser(denoiser, "LocalConditions")
        if isinstance(conditioner, Neighbourhoods):
            kind = type(conditioner).__name__
            raise InputError(
                f"LocalConditions: {kind} is no conditioner; name it: neighbourhoods={kind}()"
            )
        if neighbourhoods is not None:
            check_neighbourhoods(neighbourhoods)
        if not isinstance(rows, int) or rows < 1:
            raise InputError(f"LocalConditions: rows is a number of passes at a time, not {rows!r}")
        super().__init__(denoiser)
        self.given = conditioner
        self.neighbourhoods = neighbourhoods or INTERVENTIONS["local"]
        self.rows = rows

    @property
    def conditioner(self) -> Any:
        """The one it was given, or the denoiser's own; with its conditions kept apart."""
        found = self.given or super().conditioner
        if found is None:
            raise InputError(
                "LocalConditions: the denoiser has no conditioner of its own; give conditioner="
            )
        if hasattr(found, "split"):
            return found
        return EachLeftOut(found) if isinstance(self.neighbourhoods, Clusters) else EachAlone(found)

    @property
    def changes(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self.neighbourhoods.about

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        if cond is None:
            return self.denoiser(x, sigma, cond)
        if not isinstance(sigma, Tensor) or not len(x) == len(cond) == sigma.numel():
            raise InputError(
                "LocalConditions: sigma and cond are tensors with a row for each of "
                f"{len(x)} images"
            )
        size = (x.shape[2], x.shape[3])
        conditioner = self.conditioner
        rows = [kept_conds(conditioner, c) for c in cond]
        levels = zip(rows, sigma, strict=True)
        asked = [Asked(kept[1:], conditioner, float(level), size) for kept, level in levels]
        subsets = [self.neighbourhoods.subsets(one) for one in asked]
        conds = [subset_conds(conditioner, *of) for of in zip(rows, subsets, strict=True)]
        passes = [len(some) for some in subsets]
        image = torch.repeat_interleave(torch.tensor(passes, device=x.device))
        x0 = in_turns(self.denoiser, x, sigma, image, torch.cat(conds), self.rows)
        weighed = []
        for one, some, own in zip(asked, subsets, x0.split(passes), strict=True):
            weights = self.neighbourhoods.weights(one, some, own)
            weighed.append((weights[:, None] * own).sum(0))
        return torch.stack(weighed)


class ComposedScores(LocalConditions):
    """Explicit composition of the single-condition scores of one model: the baseline."""

    def __init__(self, denoiser: Denoiser, conditioner: Any = None, rows: int = 256):
        super().__init__(denoiser, conditioner, INTERVENTIONS["composed"], rows)


class LocalPixels(Wrapper):
    """A denoiser whose every cell sees only itself and what is up to `radius` around it.

    What is not seen is replaced by the `mean` of x there: as it is (fill="mean"), or with fresh
    noise of the level of x on it, from `seed`, the same for all images (fill="noise"). For
    measuring how much a network uses its far field."""

    def __init__(
        self,
        denoiser: Denoiser,
        radius: float,
        cell: float = 0.125,
        fill: Literal["noise", "mean"] = "noise",
        mean: float = 0.0,
        seed: int = 0,
        rows: int = 256,
    ):
        super().__init__(denoiser)
        self.radius = radius
        self.cell = cell
        self.fill = fill
        self.mean = mean
        self.seed = seed
        self.rows = rows

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        cell, seen = self.masks(x)
        fill = torch.full_like(x, self.mean)
        if self.fill == "noise":
            fresh = torch.randn(x.shape[1:], generator=torch.Generator().manual_seed(self.seed))
            fill = fill + sigma[:, None, None, None] * fresh.to(x)
        x0 = torch.zeros_like(x)
        for index in torch.arange(len(cell) * len(x), device=x.device).split(self.rows):
            mask, image = index // len(x), index % len(x)
            patch = torch.where(seen[mask, None], x[image], fill[image])
            part = self.denoiser(patch, sigma[image], cond if cond is None else cond[image])
            x0 = x0.index_add(0, image, part * cell[mask, None])
        return x0

    def masks(self, x: X) -> tuple[Masks, Masks]:
        """For each cell, its own pixels and the pixels it sees."""
        count = round(1 / self.cell)
        places = [(torch.arange(side, device=x.device) + 0.5) / side for side in x.shape[2:]]
        own = [(place * count).long() for place in places]
        cells = torch.arange(count, device=x.device)
        centre = (cells + 0.5) / count
        i, j = torch.cartesian_prod(cells, cells).T[..., None, None]
        away = torch.maximum((places[0][:, None] - centre[i]).abs(), (places[1] - centre[j]).abs())
        return (own[0][:, None] == i) & (own[1] == j), away < 0.5 / count + self.radius


def kept_conds(
    conditioner: Any, cond: Float[Tensor, " features"]
) -> Float[Tensor, "choices inner"]:
    """The cond of nothing, then of each condition alone; of EachLeftOut, that of the whole set,
    then of all but each."""
    if isinstance(conditioner, EachAlone):
        return conditioner.rows(cond)
    return torch.cat([torch.zeros_like(cond)[None], conditioner.split(cond).to(cond)])


def subset_conds(
    conditioner: Any, rows: Float[Tensor, "choices inner"], subsets: Subsets
) -> Float[Tensor, "subset inner"]:
    """The cond of each subset: a row, or the sum of several where cond is one."""
    if isinstance(conditioner, EachLeftOut):
        return rows
    count = subsets.sum(1, keepdim=True)
    if isinstance(conditioner, EachAlone) and bool((count > 1).any()):
        raise InputError(
            "these neighbourhoods ask for several conditions at once, whose cond is no sum of "
            "parts (split); take Nearest() or Strongest()"
        )
    return torch.cat([1 - count, subsets], 1).to(rows) @ rows


def in_turns(
    denoiser: Denoiser, x: X, sigma: Sigmas, image: Tensor, cond: Tensor, rows: int
) -> Float[Tensor, "pass channel height width"]:
    """denoiser(x[image], sigma[image], cond), at most `rows` at a time.

    Passes that are equal are one: a condition alone is the same whichever other is left out."""
    noisy = distinct(x, sigma[:, None])[1]
    first, which = distinct(noisy[image, None], cond)
    turns = zip(image[first].split(rows), cond[first].split(rows), strict=True)
    return torch.cat([denoiser(x[some], sigma[some], c) for some, c in turns])[which]
