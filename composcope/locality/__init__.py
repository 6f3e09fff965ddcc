"""What does each pixel of a score look at: which other pixels, and which conditions?"""

from composcope.locality.audit import Audit, audit
from composcope.locality.influence import influence, noised, trajectory
from composcope.locality.intervention import ComposedScores, LocalConditions, LocalPixels, intervene
from composcope.locality.jacobian import pixel_gradient
from composcope.locality.measure import MAPS, locality, maps_of
from composcope.locality.neighbourhoods import INTERVENTIONS, Clusters, Nearest, Strongest, Within

__all__ = [
    "INTERVENTIONS",
    "MAPS",
    "Audit",
    "Clusters",
    "ComposedScores",
    "LocalConditions",
    "LocalPixels",
]
__all__ += ["Nearest", "Strongest", "Within", "audit", "influence", "intervene"]
__all__ += ["locality", "maps_of", "noised", "pixel_gradient", "trajectory"]
