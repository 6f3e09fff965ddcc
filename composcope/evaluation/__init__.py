"""Did it draw what was asked? Find the objects of an image, match them with what was asked, say how
far it holds."""

from composcope.evaluation.accuracy import perfect
from composcope.evaluation.answers import Answers, kept_answers, read_answers, write_answers
from composcope.evaluation.detect import Found, detect
from composcope.evaluation.evaluate import answered, evaluate, evaluate_images
from composcope.evaluation.k_max import k_max, paper_rule, strict_rule
from composcope.evaluation.matching import Outcome, match

__all__ = ["Answers", "Found", "Outcome", "answered", "detect", "evaluate", "evaluate_images"]
__all__ += [
    "k_max",
    "kept_answers",
    "match",
    "paper_rule",
    "perfect",
    "read_answers",
    "strict_rule",
]
__all__ += ["write_answers"]
