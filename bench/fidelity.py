"""How close our images come to Blender's: `python -m bench.fidelity FOLDER [--sheet out.png]`.

FOLDER holds images/*.png and scenes/*.json, each scene in the official CLEVR fields plus
camera_location and lights. Both images are 320x240, resized to 128x128 by area. The pixels "of
objects and their shadows" are those where either image differs from our render of the same scene
without its objects by more than 4 bytes in some channel.

    PSNR = 10 log10(255^2 / mean squared error)"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from PIL import Image
from skimage.metrics import structural_similarity

from composcope.errors import InputError
from composcope.files import whole
from composcope.scenes.render import render
from composcope.scenes.scene import Object, Scene

SHIPPED = Path(__file__).parents[1] / "tests" / "data" / "clevr_reference"
NATIVE, SIDE = (320, 240), 128
FLOORS = (30, 0.93, 22)
CHANGED = 4  # bytes by which a pixel must differ from the empty scene to count as object or shadow


@dataclass(frozen=True)
class Args:
    """python -m bench.fidelity FOLDER --sheet docs/fidelity.png"""

    folder: Annotated[Path, tyro.conf.Positional]
    """Reference renders: images/NAME.png and scenes/NAME.json"""
    sheet: Path | None = None
    """Write six scenes side by side (reference above ours) to this file"""


def read(folder: Path) -> tuple[list[Scene], np.ndarray]:
    """The scenes of a folder and their reference images [n, 240, 320, 3]."""
    files = sorted(folder.glob("scenes/*.json"))
    if not files:
        raise InputError(f"{folder} holds no scenes/*.json")
    records = [json.loads(file.read_text()) for file in files]
    images = [
        Image.open(folder / "images" / record["image_filename"]).convert("RGB")
        for record in records
    ]
    return [scene_of(record) for record in records], np.stack(
        [np.asarray(image) for image in images]
    )


def scene_of(record: dict) -> Scene:
    objects = tuple(
        Object(o["shape"], o["size"], o["material"], o["color"], *o["3d_coords"][:2], o["rotation"])
        for o in record["objects"]
    )
    lamps = (tuple(record["lights"][name]) for name in ("Key", "Fill", "Back"))
    return Scene(objects, tuple(record["camera_location"]), *lamps)


def small(images: np.ndarray) -> np.ndarray:
    return np.stack(
        [np.asarray(Image.fromarray(i).resize((SIDE, SIDE), Image.Resampling.BOX)) for i in images]
    )


def psnr(errors: np.ndarray) -> float:
    """Of signed differences in bytes; 99 for identical images."""
    return float(10 * np.log10(255**2 / max(np.mean(np.square(errors, dtype=float)), 1e-5)))


def changed(reference: np.ndarray, ours: np.ndarray, empty: np.ndarray) -> np.ndarray:
    """The pixels of objects and their shadows: boolean [n, h, w]."""
    difference = np.maximum(abs(reference - empty), abs(ours - empty))
    return difference.max(-1) > CHANGED


def compare(scenes: list[Scene], images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per scene: PSNR and SSIM of the whole image, PSNR of objects and shadows."""
    bare = [Scene((), s.camera, s.key, s.fill, s.back) for s in scenes]
    reference, ours, empty = (
        small(i).astype(int) for i in (images, render(scenes, NATIVE), render(bare, NATIVE))
    )
    whole_image = np.array([psnr(a - b) for a, b in zip(reference, ours, strict=True)])
    ssim = [
        structural_similarity(a, b, channel_axis=-1, data_range=255)
        for a, b in zip(reference, ours, strict=True)
    ]
    masks = changed(reference, ours, empty)
    parts = [psnr((a - b)[mask]) for a, b, mask in zip(reference, ours, masks, strict=True)]
    return whole_image, np.array(ssim), np.array(parts)


def sheet(scenes: list[Scene], images: np.ndarray, path: Path) -> None:
    """Six scenes spread over the folder, those with more objects last: the reference above, ours
    below."""
    order = sorted(range(len(scenes)), key=lambda i: len(scenes[i].objects))
    chosen = [
        order[i]
        for i in np.linspace(len(order) // 4, len(order) - 1, min(6, len(order))).astype(int)
    ]
    ours = render([scenes[i] for i in chosen], NATIVE)
    columns = [np.concatenate([images[i], image]) for i, image in zip(chosen, ours, strict=True)]
    with whole(path) as partial:
        Image.fromarray(np.concatenate(columns, axis=1)).save(partial, format="PNG")


def rows(folder: Path = SHIPPED) -> list[tuple[str, str, str]]:
    """(what, mean +- standard error and the worst image, floor) of a folder; by default the four
    renders we ship."""
    scenes, images = read(folder)
    names = ("PSNR, whole image", "SSIM, whole image", "PSNR, objects and shadows")
    out = []
    for name, x, unit, floor in zip(
        names, compare(scenes, images), (" dB", "", " dB"), FLOORS, strict=True
    ):
        spread = x.std() / np.sqrt(len(x))
        measured = f"{x.mean():.4g} +- {spread:.2g}{unit} (worst {x.min():.4g})"
        out.append((name, measured, f"floor {floor}; {len(x)} Blender renders"))
    return out


def main(args: Args) -> None:
    for row in rows(args.folder):
        print("  ".join(f"{cell:<40}" for cell in row))
    if args.sheet:
        sheet(*read(args.folder), args.sheet)


if __name__ == "__main__":
    main(tyro.cli(Args))
