"""What does each pixel of a score look at: which other pixels, and which conditions?"""

from composcope.locality.audit import Audit, audit
from composcope.locality.influence import influence, noised, trajectory
from composcope.locality.intervention import (
    ComposedScores,
    Counted,
    LocalConditions,
    LocalPixels,
    Nearest,
    Strongest,
    Within,
)
from composcope.locality.jacobian import jacobian, pixel_gradient, pixel_reach

__all__ = [
    "Audit",
    "ComposedScores",
    "Counted",
    "LocalConditions",
    "LocalPixels",
    "Nearest",
    "Strongest",
    "Within",
    "audit",
    "influence",
    "jacobian",
    "noised",
    "pixel_gradient",
    "pixel_reach",
    "trajectory",
]
