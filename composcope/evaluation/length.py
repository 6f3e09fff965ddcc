"""Length generalization: ask for K = 0, 1, 2, ... objects, draw, and judge every image.

images = drawer(condition_sets, seeds),   outcome = match(asked, detect(image))

A drawer is the sampler of a denoiser, a renderer, or anything that makes an image of a condition set and a seed.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from composcope.diffusion.denoiser import Conditioner, ConditionSet, Denoiser
from composcope.diffusion.sample import noise_levels, sample
from composcope.errors import InputError
from composcope.evaluation.detect import Found, detect
from composcope.evaluation.matching import Outcome, match
from composcope.evaluation.oracle import Drawer, ask
from composcope.files import whole
from composcope.progress import bar
from composcope.scenes.scene import COLORS

Images = UInt8[np.ndarray, "n h w 3"]


@dataclass(frozen=True)
class Judged:
    """The images of one K, what was asked of each, what was found in it, and how it did."""

    images: Images
    asked: Sequence[ConditionSet]
    found: list[list[Found]]
    outcomes: list[Outcome]


def judge(images: Images, asked: Sequence[ConditionSet], cell: float) -> Judged:
    """Detect and match; `cell` is the side of a grid cell as a fraction of the image."""
    found = detect(images)
    return Judged(images, asked, found, [match(a, f, cell) for a, f in zip(asked, found, strict=True)])


def sampler(
    denoiser: Denoiser,
    conditioner: Conditioner,
    decode: Callable[[Float[Tensor, "n channel height width"]], Images],
    shape: Sequence[int],
    steps: int = 32,
    device: torch.device | str = "cpu",
) -> Drawer:
    """The drawer of a denoiser: Heun's method from each seed's own noise; `decode` turns x into bytes."""

    def draw(condition_sets: Sequence[ConditionSet], seeds: Sequence[int]) -> Images:
        pairs = zip(condition_sets, seeds, strict=True)
        cond = torch.cat([conditioner([conditions], seed) for conditions, seed in pairs])
        return decode(sample(denoiser, seeds, shape, cond, noise_levels(steps), device=device))

    return draw


def length(
    draw: Drawer,
    how: str,
    Ks: Sequence[int],
    num: int,
    cell: float,
    keep: Path | None = None,
    seed: int = 0,
    batch: int = 32,
) -> dict[int, Judged]:
    """`num` images for each K of `Ks`, judged. Asked in the way `how` ("paper", "random", "colors").

    Images are kept in the folder `keep` as they are drawn, `batch` at a time, and never drawn twice.
    """
    judged: dict[int, Judged] = {}
    with bar() as progress:
        task = progress.add_task("drawing", total=num * len(Ks))
        for K in Ks:
            asked, seeds = ask(how, K, num, seed), range(first := seed + 100_000 * K, first + num)
            images = read(keep / f"K{K}.npz") if keep else None
            while images is None or len(images) < num:
                done = 0 if images is None else len(images)
                progress.update(task, description=f"drawing K = {K}", completed=num * len(judged) + done)
                fresh = draw(asked[done : done + batch], seeds[done : done + batch])
                images = fresh if images is None else np.concatenate([images, fresh])
                if keep:
                    write(keep / f"K{K}.npz", images)
            judged[K] = judge(images[:num], asked, cell)
            progress.update(task, completed=num * len(judged))
    return judged


def judge_folder(folder: Path, asked: Path, cell: float) -> dict[int, Judged]:
    """Images made elsewhere, by how much was asked of each; `asked`: {"file.png": [[u, v], ...] or ["red", ...]}."""
    by_K: dict[int, list[tuple[np.ndarray, ConditionSet]]] = {}
    for name, conditions in read_asked(asked).items():
        by_K.setdefault(len(conditions), []).append((read_image(folder / name), conditions))
    shapes = {image.shape for pairs in by_K.values() for image, _ in pairs}
    if len(shapes) > 1:
        raise InputError(f"the images in {folder} differ in size: {sorted(shapes)}")
    return {K: judge(np.stack([i for i, _ in pairs]), [c for _, c in pairs], cell) for K, pairs in sorted(by_K.items())}


def place(u: float, v: float) -> tuple[float, float]:
    return float(u), float(v)


def read_asked(path: Path) -> dict[str, ConditionSet]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        sets: dict[str, ConditionSet] = {
            name: [c if isinstance(c, str) else place(*c) for c in said[name]] for name in said
        }
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise InputError(f'{path} is not of the form {{"file.png": [[u, v], ...]}} ({error})') from None
    for name, conditions in sets.items():
        wrong = [c for c in conditions if (c not in COLORS if isinstance(c, str) else not 0 <= min(c) <= max(c) <= 1)]
        if wrong:
            raise InputError(f"{path}, {name}: {wrong[0]} is neither a location in [0, 1]^2 nor a colour")
    return sets


def read_image(path: Path) -> UInt8[np.ndarray, "h w 3"]:
    try:
        return np.array(Image.open(path).convert("RGB"))
    except (OSError, SyntaxError):
        raise InputError(f"{path} is missing or not an image") from None


def read(path: Path) -> Images | None:
    """Images kept before, if any."""
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            return file["images"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        raise InputError(f"{path} does not hold images; move it away and they are drawn again") from None


def write(path: Path, images: Images) -> None:
    with whole(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, images=images)
