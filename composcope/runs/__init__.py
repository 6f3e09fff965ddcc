"""What was trained? A Config and a folder make a run; a folder or the name of a shipped model gives a Denoiser back."""

from composcope.runs.config import Config, configure
from composcope.runs.edm2 import import_edm2
from composcope.runs.model import Model, load

__all__ = ["Config", "Model", "configure", "import_edm2", "load"]
