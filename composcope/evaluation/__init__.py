"""Did it draw what was asked? Find the objects of an image, match them with what was asked, say how far it holds."""

from composcope.evaluation.detect import Found, detect
from composcope.evaluation.k_max import KMax, k_max, paper_rule, strict_rule
from composcope.evaluation.length import Judged, judge, length, sampler
from composcope.evaluation.matching import Outcome, match
from composcope.evaluation.oracle import oracle

__all__ = [
    "Found",
    "Judged",
    "KMax",
    "Outcome",
    "detect",
    "judge",
    "k_max",
    "length",
    "match",
    "oracle",
    "paper_rule",
    "sampler",
    "strict_rule",
]
