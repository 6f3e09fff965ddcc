"""What was trained? A Config and a folder make a run; its folder gives a Denoiser back."""

from composcope.runs.config import Config, configure
from composcope.runs.model import Model, load, own_device, usable

__all__ = ["Config", "Model", "configure", "load", "own_device", "usable"]
