"""Models made elsewhere as denoisers: eps, v, flow and x0 predictions, diffusers, EDM2 snapshots.

from composcope.adapters import from_eps
denoiser = from_eps(model, alphas_cumprod)      # model(x_t, t[, cond]) -> eps
x0 = denoiser(x, sigma, cond)                   # x = x0 + sigma n"""

from importlib import import_module
from typing import TYPE_CHECKING

from composcope.adapters.conditions import Classes, Phrases
from composcope.adapters.prediction import Adapted, from_eps, from_flow, from_v, from_x0

if TYPE_CHECKING:
    from composcope.adapters.diffusers import from_diffusers
    from composcope.adapters.edm2 import import_edm2

__all__ = ["Adapted", "Classes", "Phrases", "from_diffusers", "from_eps", "from_flow", "from_v"]
__all__ += ["from_x0", "import_edm2"]
LATER = {"from_diffusers": "diffusers", "import_edm2": "edm2"}  # imported when asked for


def __getattr__(name: str) -> object:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{LATER[name]}"), name)
