"""From answers to rows: shares, objects an image, K_max, and what may be the detector's fault."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from composcope.evaluation.accuracy import NoScene, error_of
from composcope.evaluation.answers import Answers
from composcope.evaluation.detect import Misjudged
from composcope.evaluation.k_max import (
    PAPER_IMAGES,
    from_one_on,
    k_max,
    k_max_on_eight,
    paper_rule,
    strict_rule,
)
from composcope.evaluation.matching import Outcome
from composcope.results import Estimate, Row, mean, row
from composcope.scenes.parts import SumOfParts

ON_EIGHT = {"paper": "eight", "places": "places_eight"}  # the same rule on eight images


def length_rows(
    conditioner: SumOfParts,
    answers: Mapping[int, Answers],
    tolerance: float,
    setting: Mapping[str, Any],
    error: Misjudged | None,
    trained: int | None,
    extras: int,
) -> list[Row]:
    """For each K shares, means, and failures that the detector may explain; K_max by each rule."""
    outcomes = {K: some.outcomes(conditioner, tolerance) for K, some in answers.items()}
    detector = next((some.detector for some in answers.values()), None)
    within = tolerance if conditioner.has_places else None
    coordinates = {**setting, "tolerance": within, "detector": detector}
    rows = []
    for K, of_K in outcomes.items():
        for name, values in image_numbers(of_K).items():
            rows.append(row(f"length/{name}", interval(values), **coordinates, K=K))
        if K > 0 and error and trained:
            rows.append(row("length/error", error.share(K, len(of_K), trained), **coordinates, K=K))
        if extras:
            most = max(outcome.extra for outcome in of_K)
            rows.append(row("length/most_extra", most, **coordinates, K=K))
    counted = from_one_on(outcomes)
    for name, found in k_maxes(counted, error, trained, extras).items():
        rows.append(row("length/k_max", found, **coordinates, rule=name, max_K=max(counted)))
    return rows


def k_maxes(
    outcomes: Mapping[int, Sequence[Outcome]],
    error: Misjudged | None,
    trained: int | None,
    extras: int,
) -> dict[str, Estimate]:
    """By our strict rule and by the paper's, also on as many images as the paper counted. Where
    labels leave objects out, `extras` others are allowed; by the rules of places any number is."""
    if not outcomes:
        return {}  # K = 1 was not asked for
    found = {"strict": k_max(outcomes, strict_rule, extras)}
    if not trained:
        return found
    paper = paper_rule(trained, error)
    allowed = {"paper": extras, "places": math.inf} if extras else {"paper": extras}
    for name, others in allowed.items():
        found[name] = k_max(outcomes, paper, others)
    if min(map(len, outcomes.values())) >= PAPER_IMAGES:
        for name, others in allowed.items():
            found[ON_EIGHT[name]] = k_max_on_eight(outcomes, paper, others)
    return found


def image_numbers(outcomes: Sequence[Outcome]) -> dict[str, np.ndarray]:
    """What is told of the images of one K, one number an image; truth values become shares."""
    names = ("found", "missing", "extra", "merged", "drawn")
    counts = {name: np.array([getattr(outcome, name) for outcome in outcomes]) for name in names}
    missing, extra = counts["missing"], counts["extra"]
    shares = {"exact": (missing == 0) & (extra == 0), "complete": missing == 0}
    return {**shares, **counts, "count_error": np.abs(extra - missing)}


def interval(values: np.ndarray) -> Estimate:
    """The share or mean with its interval; one image has none."""
    return mean(values) if len(values) > 1 else Estimate(float(values[0]), n=1)


def known_error(
    conditioner: SumOfParts,
    way: str,
    view: str,
    tolerance: float,
    answers: Mapping[int, Answers],
    keep: str | Path | None,
) -> Misjudged | None:
    """The detector's own error at what was asked; None where no scene can be made of it."""
    shape = next(iter(answers.values())).images.shape[1:3]
    place = Path(keep) if keep else None
    try:
        return error_of(conditioner, way, view, tolerance, shape, list(answers), keep=place)
    except NoScene:
        return None
