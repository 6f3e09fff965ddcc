"""Composcope: a microscope for compositional generalization in conditional diffusion models.

One contract stands in the middle, and every room makes, wraps or measures it:

    denoiser(x, sigma, cond) -> x0
"""

__version__ = "0.1.0"
