"""Classifier-free guidance: away from what is done when nothing is asked (Ho and Salimans 2022).

D_b + scale (D_c - D_b)            D_c asked for c, D_b asked for nothing"""

from composcope.diffusion.denoiser import Cond, Denoiser, Sigmas, Wrapper, X


class Guided(Wrapper):
    """The denoiser under guidance; scale 1 is itself and costs one evaluation, others two."""

    def __init__(self, denoiser: Denoiser, scale: float):
        super().__init__(denoiser)
        self.scale = scale

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        asked = self.denoiser(x, sigma, cond)
        if self.scale == 1:
            return asked
        nothing = self.denoiser(x, sigma, None)
        return nothing + self.scale * (asked - nothing)
