"""The EDM2 U-Net (Karras et al. 2024, config G) and its uncertainty head.

    F = unet(x, noise_label, cond)          noise_label = log(sigma) / 4; F has the shape of x

Names of modules and parameters are those of the published snapshots, so that mapping one here is a
table. `fold`, `waves`, `slots`, `gate` and `bilinear` are beyond the original. With `slots`, one
map embeds all entries of cond: a sum that does not depend on which slot holds what. `bilinear`
keeps the label out of the embedding's SiLU and multiplies by the gains after the block's: what a
block adds is then linear in cond, as the mean image of separate objects is. Small networks on
centred images, whose background has no hint of place, else take several times as long to learn."""

import math
from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from composcope.errors import InputError
from composcope.nets.block import Block
from composcope.nets.layers import MPConv, MPFourier, crop, mp_cat, mp_silu, mp_sum

Images = Float[Tensor, "batch channels height width"]
Levels = Float[Tensor, " batch"]
Cond = Float[Tensor, "batch features"] | None


class UNet(nn.Module):
    """Karras et al. 2024, figure 21."""

    def __init__(
        self,
        resolution: int,  #                              pixels of a side of the image
        channels: int = 3,  #                            of the image
        features: int = 0,  #                            of cond; 0: there is none
        model_channels: int = 192,  #                    the width that multiples below refer to
        channel_mult: Sequence[int] = (1, 2, 3, 4),  #   width of each level, finest first
        channel_mult_noise: int | None = None,  #        of the noise features; None: the first
        channel_mult_emb: int | None = None,  #          of the embedding; None: the widest level's
        num_blocks: int = 3,  #                          residual blocks of each level
        attn_resolutions: Sequence[int] = (16, 8),  #    sides (folded) with self-attention
        label_balance: float = 0.5,  #                   of noise (0) and cond (1) in the embedding
        concat_balance: float = 0.5,  #                  of main path (0) and skip connection (1)
        channels_per_head: int = 64,  #                  of self-attention
        dropout: float = 0.0,  #                         share of activations left out in training
        res_balance: float = 0.3,  #                     of main path (0) and residual branch (1)
        attn_balance: float = 0.3,  #                    of main path (0) and self-attention (1)
        clip_act: float | None = 256,  #                 activations are cut at +-this; None: never
        fold: int = 1,  #                                fold x fold pixels become channels
        waves: int = 0,  #                               waves^2 input planes: where a pixel is
        slots: int = 1,  #                               entries of cond that one map embeds
        gate: int = 0,  #                                gate^2 more output channels (see Precond)
        bilinear: bool = False,  #                       gains linear in cond, after the SiLU
    ):
        super().__init__()
        self.resolution = resolution
        self.features = features
        self.fold = fold
        self.label_balance = label_balance
        self.concat_balance = concat_balance
        levels = len(channel_mult)
        if resolution % (fold << (levels - 1)):
            divided = f"not divisible by fold {fold} x 2^{levels - 1} levels"
            raise InputError(f"resolution {resolution} is {divided}")
        self.latent = resolution // fold  # side of the folded image, which levels halve exactly
        self.waves = waves
        self.bilinear = bilinear
        widths = [model_channels * mult for mult in channel_mult]
        noise_width, emb_width = widths[0], max(widths)
        if channel_mult_noise is not None:
            noise_width = model_channels * channel_mult_noise
        if channel_mult_emb is not None:
            emb_width = model_channels * channel_mult_emb
        block = partial(
            Block,
            emb_channels=emb_width,
            channels_per_head=channels_per_head,
            dropout=dropout,
            res_balance=res_balance,
            attn_balance=attn_balance,
            clip_act=clip_act,
            bilinear=bilinear,
        )

        # Embedding.
        self.out_gain = nn.Parameter(torch.zeros([]))
        self.emb_fourier = MPFourier(noise_width)
        self.emb_noise = MPConv(noise_width, emb_width)
        self.slots = slots
        self.emb_label = MPConv(features // slots, emb_width) if features else None

        # Encoder.
        self.enc = nn.ModuleDict()
        skips: list[int] = []
        out = channels * fold**2 + 1 + waves**2
        for level, width in enumerate(widths):
            res = self.latent >> level
            if level == 0:
                self.enc[f"{res}x{res}_conv"] = MPConv(out, width, 3)
                out = width
            else:
                self.enc[f"{res}x{res}_down"] = block(out, out, flavor="enc", resample="down")
            skips.append(out)
            attends = res in attn_resolutions
            for index in range(num_blocks):
                name = f"{res}x{res}_block{index}"
                self.enc[name] = block(out, width, flavor="enc", attention=attends)
                out = width
                skips.append(out)

        # Decoder.
        self.dec = nn.ModuleDict()
        for level, width in reversed(list(enumerate(widths))):
            res = self.latent >> level
            if level == len(widths) - 1:
                self.dec[f"{res}x{res}_in0"] = block(out, out, flavor="dec", attention=True)
                self.dec[f"{res}x{res}_in1"] = block(out, out, flavor="dec")
            else:
                self.dec[f"{res}x{res}_up"] = block(out, out, flavor="dec", resample="up")
            attends = res in attn_resolutions
            for index in range(num_blocks + 1):
                name, inputs = f"{res}x{res}_block{index}", out + skips.pop()
                self.dec[name] = block(inputs, width, flavor="dec", attention=attends)
                out = width
        self.out_conv = MPConv(out, (channels + gate**2) * fold**2, 3)

    def forward(
        self, x: Images, noise_label: Levels, cond: Cond = None, centre: int | None = None
    ) -> Float[Tensor, "batch outputs h w"]:
        """F, or its central square of `centre` pixels, with no more of the decoder than needed."""
        if cond is not None and cond.shape[1] != self.features:
            wanted = f"the network was made for {self.features}"
            raise InputError(f"cond has {cond.shape[1]} features, {wanted}")
        emb = self.embed(noise_label, cond)
        x = self.entrance(x)
        # What says where a pixel is, the same for every image: channels after those of x.
        shared = wave_planes(x.shape[2], self.waves).to(x) if self.waves else None
        skips: list[Tensor] = []
        for name, block in self.enc.items():
            x = block(x, shared=shared) if name.endswith("_conv") else block(x, emb)
            skips.append(x)
        square = None if centre is None else centre // self.fold
        decoder = zip(self.dec.items(), self.windows(square), strict=True)
        for (name, block), (keep, needs) in decoder:
            if "block" in name:
                x = mp_cat(crop(x, needs), crop(skips.pop(), needs), self.concat_balance)
            x = block(x, emb, keep)
        return F.pixel_shuffle(self.out_conv(x, gain=self.out_gain, keep=square), self.fold)

    def windows(self, square: int | None) -> list[tuple[int | None, int | None]]:
        """The sides of the central squares that each decoder block puts out and takes in.

        Read backwards from `square`: a 3x3 convolution reaches 1 further on each side, a residual
        block 2, attention everywhere."""
        if square is None:
            return [(None, None)] * len(self.dec)
        full, needs = self.latent, min(square + 2, self.latent)
        found: list[tuple[int | None, int | None]] = []
        for block in reversed(list(self.dec.values())):
            keep, needs = needs, full if block.heads else min(needs + 4, full)
            found.append((keep, needs))
            if block.resample == "up":
                margin = (full - needs) // 4  # of the smaller image
                full //= 2
                needs = full - 2 * margin
        return found[::-1]

    def embed(self, noise_label: Tensor, cond: Tensor | None) -> Float[Tensor, "batch emb"]:
        """Noise level and cond as one vector; sqrt(features) gives a one-hot cond unit magnitude.

        It is kept for every cond, so the embedding is linear: each condition adds the same vector
        whatever else is asked, and nothing asked (zeros or None) adds nothing. K locations then
        have magnitude sqrt(K), a list of K places about 1.3 sqrt(K): of order one. Dividing by the
        norm would make each condition weaken the others."""
        emb = self.emb_noise(self.emb_fourier(noise_label))
        if self.emb_label is not None:
            label = torch.zeros_like(emb)
            if cond is not None:
                shared = cond.unflatten(1, (self.slots, -1)).sum(1)
                label = self.emb_label(shared * math.sqrt(self.features // self.slots))
            if self.bilinear:
                return mp_sum(mp_silu(emb), label, self.label_balance)
            emb = mp_sum(emb, label, self.label_balance)
        return mp_silu(emb)

    def entrance(self, x: Tensor) -> Float[Tensor, "batch inputs height width"]:
        """Folded pixels and a channel of ones, which stands for all biases."""
        x = F.pixel_unshuffle(x, self.fold)
        return torch.cat([x, torch.ones_like(x[:, :1])], dim=1)


def wave_planes(side: int, count: int) -> Float[Tensor, "1 planes side side"]:
    """cos(pi f u) cos(pi g v) at the pixels of a square image, f, g = 0 .. count - 1, each of unit
    root mean square: the same waves that places are told in (scenes/locations.py)."""
    at = (torch.arange(side) + 0.5) / side
    along = torch.cos(math.pi * torch.arange(count)[:, None] * at)
    planes = torch.einsum("fx,gy->fgyx", along, along).flatten(0, 1)
    return (planes / planes.square().mean((1, 2), keepdim=True).sqrt())[None]


class UncertaintyHead(nn.Module):
    """u(sigma), the log variance of the denoising error at a noise level (EDM2, equation 21)."""

    def __init__(self, channels: int = 128):
        super().__init__()
        self.fourier = MPFourier(channels)
        self.linear = MPConv(channels, 1)

    def forward(self, noise_label: Levels) -> Levels:
        return self.linear(self.fourier(noise_label)).squeeze(1)
