"""The same question in a learned basis: activations, cosines of concepts, SDXL as a Denoiser."""

from composcope.features.capture import Means, capture
from composcope.features.measure import features
from composcope.features.probe import replicates, summary

__all__ = ["Means", "capture", "features", "replicates", "summary"]
