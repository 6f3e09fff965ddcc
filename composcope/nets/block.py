"""The residual block of the EDM2 U-Net."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from composcope.errors import InputError
from composcope.nets.layers import SILU, MPConv, balance, cosine_attention, crop, normalize

RESAMPLE: dict[str, nn.Module] = {
    "keep": nn.Identity(),
    "down": nn.AvgPool2d(2),
    "up": nn.Upsample(scale_factor=2),
}


class Block(nn.Module):
    """Residual block, with or without self-attention, of encoder or decoder (EDM2, figure 21)."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        emb_channels: int,
        flavor: str,
        resample: str = "keep",
        attention: bool = False,
        channels_per_head: int = 64,
        dropout: float = 0.0,
        res_balance: float = 0.3,
        attn_balance: float = 0.3,
        clip_act: float | None = 256,
        bilinear: bool = False,
    ):
        super().__init__()
        self.flavor = flavor
        self.bilinear = bilinear
        self.resample = resample
        self.dropout = dropout
        self.clip_act = clip_act
        self.res_balance = res_balance
        self.attn_balance = attn_balance
        self.heads = outputs // channels_per_head if attention else 0
        if self.heads and outputs % self.heads:
            cut = f"{outputs} channels cannot be cut into {self.heads} equal attention heads"
            raise InputError(f"{cut}; choose another head or width")
        self.emb_gain = nn.Parameter(torch.zeros([]))
        self.conv_res0 = MPConv(outputs if flavor == "enc" else inputs, outputs, 3)
        self.emb_linear = MPConv(emb_channels, outputs)
        self.conv_res1 = MPConv(outputs, outputs, 3)
        self.conv_skip = MPConv(inputs, outputs, 1) if inputs != outputs else None
        self.attn_qkv = MPConv(outputs, 3 * outputs, 1) if self.heads else None
        self.attn_proj = MPConv(outputs, outputs, 1) if self.heads else None

    def forward(
        self,
        x: Float[Tensor, "batch inputs height width"],
        emb: Float[Tensor, "batch emb"],
        keep: int | None = None,
    ) -> Float[Tensor, "batch outputs h w"]:
        """All of the output, or its central square of side `keep`, without computing the rest."""
        x = RESAMPLE[self.resample](x)
        if self.flavor == "enc":
            x = x if self.conv_skip is None else self.conv_skip(x)
            x = normalize(x, dim=1)
        of_x, of_y = balance(self.res_balance)
        reach = None if self.heads else keep  # attention looks everywhere
        y = self.residual(x, emb, of_y, reach)
        x = crop(x, reach)
        if self.flavor == "dec" and self.conv_skip is not None:
            x, of_x = self.conv_skip(x, gain=of_x), 1.0
        x = torch.add(y, x, alpha=of_x)
        if self.attn_qkv is not None and self.attn_proj is not None:
            of_x, of_y = balance(self.attn_balance)
            y = self.attn_proj(cosine_attention(self.attn_qkv(x), self.heads), gain=of_y)
            x = torch.add(y, x, alpha=of_x)
        x = crop(x, keep)
        return x if self.clip_act is None else x.clamp(-self.clip_act, self.clip_act)

    def residual(self, x: Tensor, emb: Tensor, gain: float, keep: int | None) -> Tensor:
        more = None if keep is None else keep + 2
        y = self.conv_res0(F.silu(crop(x, keep, 4)), gain=1 / SILU, keep=more)
        c = (self.emb_linear(emb, gain=self.emb_gain) + 1)[:, :, None, None]
        y = F.silu(y) * c if self.bilinear else F.silu(y * c)
        if self.dropout:
            y = F.dropout(y, self.dropout, self.training)
        return self.conv_res1(y, gain=gain / SILU, keep=keep)
