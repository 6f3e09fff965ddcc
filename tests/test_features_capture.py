import pytest
import torch
from torch import nn

from composcope.errors import InputError
from composcope.features.capture import Means, as_map, capture, first_input, pooled
from composcope.features.means import modulated_layers
from composcope.nets.unet import UNet


def unet() -> UNet:
    torch.manual_seed(0)
    small = {"model_channels": 8, "channel_mult": (1, 2), "num_blocks": 1}
    net = UNet(8, features=8, **small, attn_resolutions=(), channels_per_head=8)
    for name, weight in net.named_parameters():
        if name.endswith("gain"):
            nn.init.ones_(weight)
    return net.eval()


def hooks(net: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules())


def inputs() -> tuple:
    return torch.randn(3, 3, 8, 8), torch.zeros(3), torch.eye(8)[:3]


def test_hooks_change_nothing_and_leave_nothing_behind():
    net, given = unet(), inputs()
    before = net(*given)
    seen = {}
    with capture(net, modulated_layers(net), seen.__setitem__, first_input):
        during = net(*given)
        assert hooks(net) == len(modulated_layers(net)) == len(seen)
    assert torch.equal(before, during) and torch.equal(before, net(*given)) and hooks(net) == 0


def test_hooks_are_gone_after_an_exception():
    net = unet()
    with pytest.raises(RuntimeError, match="half way"), capture(net, ["out_conv"], lambda *_: None):
        raise RuntimeError("half way")
    assert hooks(net) == 0
    with (
        pytest.raises(InputError, match="no module 'nowhere'"),
        capture(net, ["out_conv", "nowhere"], lambda *_: None),
    ):
        pass
    assert hooks(net) == 0


def test_the_modulated_layer_is_the_product_of_the_block():
    """The input of conv_res1 against the formula of the block, element by element."""
    net, (x, label, cond) = unet(), inputs()
    name = "enc.8x8_block0"
    block, seen = net.get_submodule(name), {}
    with (
        capture(net, [f"{name}.conv_res1"], seen.__setitem__, first_input),
        capture(net, [f"{name}.conv_res0"], lambda n, a: seen.__setitem__("before", a)),
    ):
        net(x, label, cond)
    c = block.emb_linear(net.embed(label, cond), gain=block.emb_gain) + 1
    want = nn.functional.silu(seen["before"] * c[:, :, None, None])
    torch.testing.assert_close(seen[f"{name}.conv_res1"], want)


def test_running_means_are_means():
    samples, kept = torch.randn(50, 4, 2, 2), Means()
    for batch in samples.split([1, 9, 20, 20]):
        kept.add("layer", batch)
    torch.testing.assert_close(kept()["layer"], samples.mean(0))
    assert kept.sums["layer"].shape == (4, 2, 2)


def test_places_and_pooling():
    image = torch.arange(2 * 3 * 4 * 4.0).reshape(2, 3, 4, 4)
    torch.testing.assert_close(as_map(image.flatten(2).mT), image)
    assert pooled(image, 8) is not None and torch.equal(pooled(image, 4), image)
    torch.testing.assert_close(pooled(image, 2)[1, 2, 0, 1], image[1, 2, :2, 2:].mean())
    with pytest.raises(InputError, match="square"):
        as_map(torch.zeros(1, 6, 2))
