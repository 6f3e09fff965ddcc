"""Did it draw what was asked? Find the objects of an image, match them with what was asked, say how
far it holds."""

from composcope.evaluation.accuracy import perfect
from composcope.evaluation.detect import Found, detect
from composcope.evaluation.evaluate import (
    Answers,
    answered,
    evaluate,
    evaluate_images,
    read_answers,
    write_answers,
)
from composcope.evaluation.k_max import k_max, paper_rule, strict_rule
from composcope.evaluation.matching import Outcome, match

__all__ = [
    "Answers",
    "Found",
    "Outcome",
    "answered",
    "detect",
    "evaluate",
    "evaluate_images",
    "k_max",
    "match",
    "paper_rule",
]
__all__ += ["perfect", "read_answers", "strict_rule", "write_answers"]
