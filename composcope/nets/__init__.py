"""Which family of functions? The EDM2 U-Net and its patch-local twin, net(x, noise_label, cond)."""

from composcope.nets.layers import renormalize
from composcope.nets.local_unet import LocalUNet, Patches
from composcope.nets.unet import UncertaintyHead, UNet

__all__ = ["LocalUNet", "Patches", "UNet", "UncertaintyHead", "renormalize"]
