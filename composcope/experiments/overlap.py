"""Claim (ours, after Lemma 1): local conditions work as long as objects fit into neighbourhoods of
their own; two places closer than an object is wide do not.

    python -m composcope.experiments.overlap

Two places at distances from 0.05 to 0.3 of the image, asked of models that compose in different
ways, counted by the detector. Beside them what can be known without a model: real scenes of two
such objects, which the detector may misread too, and the theory, by which a pixel hears the nearer
of two conditions, so that an object is drawn as far as it lies on its own side of the border.
Images are kept: the same command goes on where it was stopped."""

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from composcope.diffusion.denoiser import Drawer
from composcope.errors import InputError
from composcope.evaluation import Answers, answered, detect, match
from composcope.evaluation.detect import detector_of
from composcope.experiments import command
from composcope.files import write_png
from composcope.locality import intervene
from composcope.progress import track
from composcope.report.interventions import close_figure, overlap_figure
from composcope.report.material import Kept
from composcope.results import Estimate, Row, add_rows, mean, row
from composcope.results.arrays import write_arrays
from composcope.results.estimate import estimate, resampled
from composcope.runs import Model, load
from composcope.scenes.condition import LocationGrid
from composcope.scenes.render import render
from composcope.scenes.rules import Rules, sample
from composcope.scenes.scene import VIEWS, Scene, project
from composcope.study.table import STEPS, TOLERANCE

DISTANCES = (0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3)
# Centres of pairs lie where training scenes have objects on all sides.
MIDDLE = ((0.4, 0.6), (0.45, 0.6))  # u, v
Pair = tuple[tuple[float, float], tuple[float, float]]
Widths = Float[np.ndarray, " object"]
Values = Float[np.ndarray, " n"]


def pairs(distance: float, num: int) -> list[Pair]:
    """In any direction; the i-th pairs of all distances have one centre and one direction."""
    found: list[Pair] = []
    for index in range(num):
        chance = np.random.default_rng([0, index])
        (u_low, u_high), (v_low, v_high) = MIDDLE
        u, v = chance.uniform(u_low, u_high), chance.uniform(v_low, v_high)
        angle = chance.uniform(0, math.pi)
        du, dv = distance / 2 * math.cos(angle), distance / 2 * math.sin(angle)
        found.append(((u - du, v - dv), (u + du, v + dv)))
    return found


def main(
    runs: tuple[str, ...] = ("exp1", "exp2l", "exp2-student"),
    repaired: tuple[str, ...] = ("exp2",),
    interventions: tuple[str, ...] = ("local", "guided"),
    distances: tuple[float, ...] = DISTANCES,
    num: int = 48,
    steps: int = STEPS,
    out: Path = Path("results/overlap.jsonl"),
) -> list[Row]:
    """Both places filled, over distance, and the distance at which each model fails.

    repaired: runs that are asked with each of the interventions; `runs` are asked as they are."""
    if not distances or num < 2 or not (runs or (repaired and interventions)):
        raise InputError("an overlap needs a model, at least one distance and 2 images at each")
    pairs_of = product(repaired, interventions)
    models: list[Drawer] = [intervene(load(run), name) for run, name in pairs_of]
    models += [load(run) for run in runs]
    folder = out.with_suffix("")
    rows: list[Row] = []
    firsts: list[Kept] = []
    for model in models:
        every = track(distances, f"{model.about['run']}: distances")
        answers = [at_distance(model, distance, num, steps, folder) for distance in every]
        outcomes = [some.outcomes(model.conditioner, TOLERANCE) for some in answers]
        counts = np.array([[one.found for one in some] for some in outcomes])
        about = {**model.about, "K": 2, "tolerance": TOLERANCE, "steps": steps, "seed": 0}
        about["detector"] = answers[0].detector
        found = curve_rows(counts, distances, about)
        if isinstance(model, Model) and model.config.net == "local":
            found.append(patch_row(model))
        add_rows(out, found)
        rows += found
        firsts.append((model.about, first_pictures(answers, distances)))
        name = "-".join(filter(None, (model.about["run"], model.about.get("intervention"))))
        write_arrays(folder / f"close-{name}.npz", *firsts[-1])
    view = getattr(models[0], "view", "full")
    known = scene_rows(distances, num, view, models[0].shape[1]) + theory_rows(distances, view)
    add_rows(out, known)
    rows += known
    write_png(folder / "overlap.png", overlap_figure(rows))
    write_png(folder / "pictures.png", close_figure(firsts))
    for one in rows:
        if one.what == "overlap/fails":
            print(f"{one.run} {one.intervention or ''}: both are drawn down to {one.estimate}")
    print(f"rows: {out}; images and figure: {folder}; composcope report shows them")
    return rows


def at_distance(model: Drawer, distance: float, num: int, steps: int, folder: Path) -> Answers:
    about = {**model.about, "distance": distance, "steps": steps}
    name = f"{about['run']}-{about.get('intervention')}-{about.get('weights')}-{distance:g}-{steps}"
    return answered(model, pairs(distance, num), 0, steps, folder / f"{name}.npz", about)


def first_pictures(answers: Sequence[Answers], distances: Sequence[float]) -> dict[str, np.ndarray]:
    """At every distance the first image and what was asked of it, as the report shows them."""
    return {
        "images": np.stack([some.images[0] for some in answers]),
        "asked": np.array([some.asked[0] for some in answers]),
        "distances": np.array(distances),
    }


def curve_rows(counts: np.ndarray, distances: Sequence[float], about: dict[str, Any]) -> list[Row]:
    """Of the objects found, [distance, image]: their mean, the share of images with both, and the
    distance at which that falls to a half."""
    rows = []
    for distance, found in zip(distances, counts, strict=True):
        at = {**about, "distance": distance}
        rows.append(row("overlap/found", mean(found), **at))
        rows.append(row("overlap/both", mean(found == 2), **at))
    curves = resampled((counts == 2).T.astype(float))
    fails = np.array([crossing(np.array(distances), curve) for curve in curves])
    rows.append(row("overlap/fails", estimate(fails, counts.shape[1]), **about))
    return rows


def patch_row(model: Model) -> Row:
    """Places nearer than a patch is wide fall into one patch. Trained with one label a patch-local
    network has never seen two there: the theory promises nothing below."""
    size = model.config.architecture
    width = (2 * size.radius + 1) / size.grid_size
    return row("overlap/one_patch", width, **model.about)


def crossing(distances: Values, shares: Values) -> float:
    """Going from far to near, the distance at which the share first falls to a half, between
    measured ones on a straight line; the nearest where it never does, the farthest where it is
    below from the start."""
    order = np.argsort(distances)[::-1]
    far, share = distances[order], shares[order]
    below = np.flatnonzero(share < 0.5)
    if not len(below):
        return float(far[-1])
    k = int(below[0])
    if k == 0:
        return float(far[0])
    part = (share[k - 1] - 0.5) / (share[k - 1] - share[k])
    return float(far[k - 1] + part * (far[k] - far[k - 1]))


def scene_rows(distances: Sequence[float], num: int, view: str, size: int) -> list[Row]:
    """What the detector finds in scenes that do have two objects there, where such scenes exist:
    objects that stand in each other are no scene."""
    rules = Rules(objects=(2, 2), camera_jitter=0.0, lamp_jitter=0.0, view=view)
    rows = []
    for distance in distances:
        scenes: list[Scene] = []
        asked: list[Pair] = []
        for index, pair in enumerate(pairs(distance, num)):
            try:
                scenes.append(sample(0, index, rules, places=pair))
                asked.append(pair)
            except InputError:
                continue
        at = {"run": "scenes", "K": 2, "distance": distance, "tolerance": TOLERANCE}
        rows.append(row("overlap/possible", len(scenes) / num, n=num, **at))
        if len(scenes) > 1:
            images = render(scenes, size=size)
            found = detect(images)
            judged = zip(asked, found, strict=True)
            outcomes = [match(LocationGrid(), *pair, TOLERANCE) for pair in judged]
            both = np.array([outcome.found == 2 for outcome in outcomes])
            rows.append(row("overlap/both", mean(both), **at, detector=detector_of(images)))
    return rows


def theory_rows(distances: Sequence[float], view: str) -> list[Row]:
    """How much of an object lies in its own neighbourhood; Lemma 1 asks for all of it."""
    widths = half_widths(view, scenes=400)
    rows = []
    for distance in distances:
        inside = own_side(distance, widths)
        value = Estimate(float(inside.mean()), n=len(widths))
        claim = "objects lie in neighbourhoods of their own"
        rows.append(row("overlap/inside", value, claim=claim, predicted=1.0, distance=distance))
    return rows


def half_widths(view: str, scenes: int) -> Widths:
    """Of the objects of training scenes, in image sides."""
    rules = Rules(camera_jitter=0.0, lamp_jitter=0.0, view=view)
    widths = []
    for index in range(scenes):
        scene = sample(0, index, rules)
        for thing in scene.objects:
            _, _, depth = project(scene.camera, (thing.x, thing.y, thing.radius), view)
            widths.append(thing.radius / depth / VIEWS[view] / 2)
    return np.array(widths)


def own_side(distance: float, half_width: Widths) -> Widths:
    """The part of a disc on its side of the line half way to the other: 1 less a segment."""
    a = np.minimum(distance / 2 / half_width, 1.0)
    return 1 - (np.arccos(a) - a * np.sqrt(1 - a**2)) / np.pi


if __name__ == "__main__":
    command(main)
