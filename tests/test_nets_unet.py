"""The U-Net against a plain twin written from the equations of EDM2, and the properties its layers
promise."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from composcope.errors import InputError
from composcope.nets import UncertaintyHead, UNet, renormalize
from composcope.nets.layers import (
    MPConv,
    MPFourier,
    cosine_attention,
    mp_cat,
    mp_silu,
    mp_sum,
    normalize,
)

SMALL = {"model_channels": 8, "channel_mult": (1, 2, 3), "num_blocks": 2, "channels_per_head": 8}


def wild(net: torch.nn.Module) -> torch.nn.Module:
    """All gains away from zero and no weight on its sphere, so that every path shows in the
    output."""
    with torch.no_grad():
        for name, value in net.named_parameters():
            value.copy_(torch.rand_like(value) + 0.5 if "gain" in name else value * 3)
    return net


def twin(
    P: dict[str, Tensor], x: Tensor, noise_label: Tensor, cond: Tensor | None, **settings
) -> Tensor:
    """F of EDM2's figure 21 from parameters by name alone, with loops and sums where the network
    has layers."""
    blocks, attended = settings["num_blocks"], settings.get("attn_resolutions", (16, 8))
    t_res, t_attn = settings.get("res_balance", 0.3), settings.get("attn_balance", 0.3)
    width, clip = settings["channels_per_head"], settings.get("clip_act", 256.0)

    def unit(v: Tensor, dims: tuple[int, ...]) -> Tensor:
        return v / (1e-4 + v.square().mean(dims, keepdim=True).sqrt())

    def weight(name: str, gain: Tensor | float = 1.0) -> Tensor:
        w = P[name + ".weight"]
        return unit(w, tuple(range(1, w.ndim))) * gain / math.sqrt(w[0].numel())

    def conv(name: str, v: Tensor, gain: Tensor | float = 1.0) -> Tensor:
        w = weight(name, gain)
        n, _, height, wide = v.shape
        columns = torch.nn.functional.unfold(v, w.shape[-1], padding=w.shape[-1] // 2)
        return (w.flatten(1) @ columns).view(n, -1, height, wide)

    def silu(v: Tensor) -> Tensor:
        return v * torch.sigmoid(v) / 0.596

    def mix(a: Tensor, b: Tensor, t: float) -> Tensor:
        return ((1 - t) * a + t * b) / math.sqrt((1 - t) ** 2 + t**2)

    def attention(name: str, v: Tensor) -> Tensor:
        n, c, height, wide = v.shape
        qkv, out = conv(name + ".attn_qkv", v).flatten(2), torch.empty(n, c, height * wide)
        per_head = c // (c // width)
        for head, image in itertools.product(range(c // width), range(n)):
            q, k, v_ = (
                qkv[image, 3 * per_head * head + i : 3 * per_head * (head + 1) : 3]
                for i in range(3)
            )
            q, k, v_ = (unit(m, (0,)) for m in (q, k, v_))
            attend = torch.softmax(q.T @ k / math.sqrt(per_head), dim=1)
            out[image, per_head * head : per_head * (head + 1)] = v_ @ attend.T
        return conv(name + ".attn_proj", out.view(n, c, height, wide))

    def block(name: str, v: Tensor, encoder: bool, attend: bool) -> Tensor:
        skip = name + ".conv_skip"
        if encoder:
            v = unit(conv(skip, v) if skip + ".weight" in P else v, (1,))
        y = conv(name + ".conv_res0", silu(v))
        c = 1 + emb @ weight(name + ".emb_linear", P[name + ".emb_gain"]).T
        y = conv(name + ".conv_res1", silu(y * c.view(*c.shape, 1, 1)))
        v = mix(conv(skip, v) if not encoder and skip + ".weight" in P else v, y, t_res)
        v = mix(v, attention(name, v), t_attn) if attend and v.shape[1] >= width else v
        return v if clip is None else torch.clamp(v, -clip, clip)

    fourier = math.sqrt(2) * torch.cos(
        noise_label[:, None] * P["emb_fourier.freqs"] + P["emb_fourier.phases"]
    )
    emb = fourier @ weight("emb_noise").T
    if "emb_label.weight" in P:
        cond = torch.zeros(len(x), P["emb_label.weight"].shape[1]) if cond is None else cond
        label = math.sqrt(cond.shape[1]) * cond @ weight("emb_label").T
        emb = mix(emb, label, settings.get("label_balance", 0.5))
    emb = silu(emb)

    res, levels, kept = x.shape[-1], len(settings["channel_mult"]), []
    for level in range(levels):
        if level == 0:
            x = conv(f"enc.{res}x{res}_conv", torch.cat([x, torch.ones(len(x), 1, res, res)], 1))
        else:
            x = (
                x[:, :, ::2, ::2] + x[:, :, 1::2, ::2] + x[:, :, ::2, 1::2] + x[:, :, 1::2, 1::2]
            ) / 4
            x, res = block(f"enc.{res // 2}x{res // 2}_down", x, True, False), res // 2
        kept.append(x)
        for index in range(blocks):
            x = block(f"enc.{res}x{res}_block{index}", x, True, res in attended)
            kept.append(x)
    for level in reversed(range(levels)):
        if level == levels - 1:
            x = block(
                f"dec.{res}x{res}_in1", block(f"dec.{res}x{res}_in0", x, False, True), False, False
            )
        else:
            x, res = x.repeat_interleave(2, 2).repeat_interleave(2, 3), res * 2
            x = block(f"dec.{res}x{res}_up", x, False, False)
        for index in range(blocks + 1):
            a, b, t = x, kept.pop(), settings.get("concat_balance", 0.5)
            scale = math.sqrt((a.shape[1] + b.shape[1]) / ((1 - t) ** 2 + t**2))
            of_a, of_b = scale * (1 - t) / math.sqrt(a.shape[1]), scale * t / math.sqrt(b.shape[1])
            x = torch.cat([a * of_a, b * of_b], 1)
            x = block(f"dec.{res}x{res}_block{index}", x, False, res in attended)
    return conv("out_conv", x, P["out_gain"])


BALANCES = dict(label_balance=0.7, concat_balance=0.4, res_balance=0.2, attn_balance=0.6)
VARIANTS = [
    {},
    # widths that heads do not divide
    {"features": 5, "attn_resolutions": (8, 4), "channels_per_head": 12},
    {"features": 5, **BALANCES},
    {"clip_act": 0.5, "num_blocks": 1},  # clipping that shows
    # no head fits
    {"channel_mult_noise": 2, "channel_mult_emb": 1, "clip_act": None, "channels_per_head": 64},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_unet_is_the_function_of_the_equations(variant):
    torch.manual_seed(0)
    settings = SMALL | variant
    net = wild(UNet(16, 3, **settings)).eval()
    x, noise_label = torch.randn(3, 3, 16, 16), torch.randn(3)
    features = variant.get("features", 0)
    for cond in [None, *([torch.eye(features)[:3], torch.randn(3, features)] if features else [])]:
        with torch.no_grad():
            expected = twin(dict(net.state_dict()), x, noise_label, cond, **settings)
            assert expected.std() > 0.1
            torch.testing.assert_close(net(x, noise_label, cond), expected, rtol=1e-5, atol=1e-5)


def test_asking_nothing_is_cond_of_zeros():
    net = wild(UNet(8, 3, 5, model_channels=8, channel_mult=(1,), num_blocks=1))
    x, noise_label = torch.randn(2, 3, 8, 8), torch.randn(2)
    assert torch.equal(net(x, noise_label), net(x, noise_label, torch.zeros(2, 5)))


def test_layers_preserve_magnitude():
    torch.manual_seed(0)
    a, b, emb = torch.randn(64, 96, 8, 8), torch.randn(64, 32, 8, 8), torch.randn(4096, 64)
    size = {
        # the border loses what padding does not bring
        "conv 3": MPConv(96, 64, 3)(a)[..., 1:-1, 1:-1],
        "conv 1": MPConv(96, 64, 1)(a),
        "linear": MPConv(64, 128)(emb),
        "silu": mp_silu(a),
        "sum": mp_sum(a, torch.randn_like(a), 0.3),
        "cat": mp_cat(a, b, 0.5),
        "fourier": MPFourier(512)(torch.randn(512)),
        "pixel norm": normalize(5 * a, dim=1),
    }
    for name, value in size.items():
        assert value.square().mean().sqrt().item() == pytest.approx(1, abs=0.03), name


def test_both_parts_of_a_concatenation_weigh_the_same():
    a, b = torch.randn(64, 96, 8, 8), torch.randn(64, 32, 8, 8)
    joined = mp_cat(a, b, 0.5)
    assert joined[:, :96].square().sum().item() == pytest.approx(
        joined[:, 96:].square().sum().item(), rel=0.03
    )


def test_attention_averages_values_of_equal_keys():
    """Where all keys agree the softmax is flat, so every pixel gets the mean of the values."""
    qkv = torch.randn(2, 2, 4, 3, 9)  # batch, head, channel, which of q k v, pixel
    qkv[:, :, :, 1] = qkv[:, :, :, 1, :1]
    values = normalize(qkv[:, :, :, 2].flatten(0, 1), dim=1).view(2, 8, 9)
    out = cosine_attention(qkv.view(2, 24, 3, 3), heads=2).view(2, 8, 9)
    torch.testing.assert_close(out, values.mean(2, keepdim=True).expand_as(out))


def test_output_starts_at_zero_and_has_unit_order_once_its_gain_is_one():
    torch.manual_seed(0)
    net = UNet(16, 3, model_channels=32, channel_mult=(1, 2), num_blocks=1)
    x, noise_label = torch.randn(8, 3, 16, 16), torch.randn(8)
    assert not net(x, noise_label).any()
    torch.nn.init.ones_(net.out_gain)
    assert 0.7 < net(x, noise_label).std().item() < 1.3


def test_renormalize_moves_weights_and_keeps_what_they_do():
    torch.manual_seed(0)
    layers = [
        layer for layer in wild(UNet(16, 3, 5, **SMALL)).modules() if isinstance(layer, MPConv)
    ]
    for layer in layers:
        before, used = layer.weight.detach().clone(), layer.effective().detach()
        renormalize(layer)
        rms = before.flatten(1).square().mean(1).sqrt().view(-1, *[1] * (before.ndim - 1))
        torch.testing.assert_close(layer.weight.detach(), before / rms, rtol=2e-4, atol=0)
        # eps does not scale along
        torch.testing.assert_close(layer.effective().detach(), used, rtol=2e-4, atol=0)


def test_gradients_are_orthogonal_to_the_weights():
    """The output does not depend on the length of a weight, so no gradient step can spend itself on
    it."""
    torch.manual_seed(0)
    net = wild(UNet(16, 3, 5, **SMALL))
    net(torch.randn(2, 3, 16, 16), torch.randn(2), torch.randn(2, 5)).square().sum().backward()
    for name, value in net.named_parameters():
        if name.endswith("weight"):
            along = (value * value.grad).flatten(1).sum(1)
            scale = value.flatten(1).norm(dim=1) * value.grad.flatten(1).norm(dim=1)
            assert (along.abs() <= 2e-3 * scale + 1e-6).all(), name


def test_fold_and_unfold_are_inverse():
    """With every layer but the ends removed, a folded network whose last map undoes its first
    returns x."""
    net = UNet(8, 3, model_channels=13, channel_mult=(1,), num_blocks=0, fold=2)
    x = torch.randn(2, 3, 8, 8)
    entered = net.entrance(x)
    assert entered.shape == (2, 13, 4, 4)
    assert torch.equal(entered[:, -1], torch.ones(2, 4, 4))
    assert torch.equal(torch.nn.functional.pixel_shuffle(entered[:, :12], 2), x)
    assert wild(net)(x, torch.randn(2)).shape == x.shape


def test_uncertainty_is_one_number_for_each_noise_level():
    torch.manual_seed(0)
    head, noise_label = UncertaintyHead(16), torch.randn(7)
    features = math.sqrt(2) * torch.cos(
        noise_label[:, None] * head.fourier.freqs + head.fourier.phases
    )
    direction = head.linear.weight[0] / head.linear.weight[0].norm()
    torch.testing.assert_close(head(noise_label), features @ direction, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [{"resolution": 12, "channel_mult": (1, 1, 1, 1)}, {"resolution": 30, "fold": 4}],
    ids=str,
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(InputError, match="not"):
        UNet(**({"model_channels": 8, "channel_mult": (1, 2)} | settings))


def test_cond_of_another_length_is_refused():
    with pytest.raises(InputError, match="cond has 4 features, the network was made for 5"):
        UNet(16, 3, 5, **SMALL)(torch.randn(1, 3, 16, 16), torch.randn(1), torch.zeros(1, 4))


def test_channels_that_all_images_share_are_as_if_each_image_had_them():
    torch.manual_seed(0)
    layer = MPConv(7, 5, 3)
    x = torch.randn(4, 3, 8, 8)
    shared = torch.randn(1, 4, 8, 8)
    whole = layer(torch.cat([x, shared.expand(4, -1, -1, -1)], 1), gain=2.0)
    assert torch.allclose(layer(x, gain=2.0, shared=shared), whole, atol=1e-6)
