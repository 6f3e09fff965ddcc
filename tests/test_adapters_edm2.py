"""EDM2 snapshots: published files become the same function, and nothing in any file is run."""

import os
import pickle
import resource
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from test_nets_unet import twin, wild
from torch import nn

from composcope.adapters.edm2 import PARAMETERS, import_edm2
from composcope.diffusion.denoiser import Precond
from composcope.errors import InputError
from composcope.nets import UncertaintyHead, UNet

SETTINGS = {
    "model_channels": 8,
    "channel_mult": [1, 2],
    "num_blocks": 1,
    "channels_per_head": 8,
    "dropout": 0.1,
}


class Persistent(nn.Module):
    """A module that pickles as `torch_utils.persistence` does: one call, with source and state."""

    def __init__(self, class_name: str, source: str):
        super().__init__()
        self._class_name, self._source = class_name, source
        self._init_args, self._init_kwargs = (), {}

    def __reduce__(self):
        meta = {"type": "class", "version": 6}
        meta |= {"module_src": self._source, "class_name": self._class_name}
        return sys.modules["torch_utils.persistence"]._reconstruct_persistent_obj, (
            {**meta, "state": self.__dict__},
        )


def original(
    tensors: dict[str, torch.Tensor], source: str, args: tuple, kwargs: dict
) -> Persistent:
    """The tree of modules that holds `tensors` under their published names."""
    root = Persistent("Precond", source)
    root._init_args, root._init_kwargs = args, kwargs
    for name, value in tensors.items():
        *path, leaf = name.split(".")
        at: nn.Module = root
        for depth, part in enumerate(path):
            if part not in at._modules:
                kind = {"unet": "UNet"}.get(part, "Block" if depth == 2 else "MPConv")
                at.add_module(
                    part, nn.ModuleDict() if part in ("enc", "dec") else Persistent(kind, source)
                )
            at = at._modules[part]
        if leaf in ("freqs", "phases"):
            at.register_buffer(leaf, value)
        else:
            at.register_parameter(leaf, nn.Parameter(value))
    return root


@pytest.fixture
def published(monkeypatch, tmp_path):
    """Write a snapshot while modules of the original's names exist, which are gone afterwards."""

    def reconstruct(meta):
        raise AssertionError("the original's reconstruct call was run")

    reconstruct.__module__, reconstruct.__qualname__ = (
        "torch_utils.persistence",
        "_reconstruct_persistent_obj",
    )
    EasyDict = type("EasyDict", (dict,), {"__module__": "dnnlib.util"})

    def write(network, protocol=4, **more) -> Path:
        with monkeypatch.context() as patch:
            for name, content in {
                "torch_utils.persistence": reconstruct,
                "dnnlib.util": EasyDict,
            }.items():
                module = types.ModuleType(name)
                setattr(module, content.__qualname__, content)
                patch.setitem(
                    sys.modules, name.partition(".")[0], types.ModuleType(name.partition(".")[0])
                )
                patch.setitem(sys.modules, name, module)
            path = tmp_path / "snapshot.pkl"
            path.write_bytes(pickle.dumps(EasyDict(ema=network, **more), protocol))
        return path

    return write


def weights(settings: dict, sigma_data: float = 0.5, width: int = 128) -> dict[str, torch.Tensor]:
    """Random tensors under the published names."""
    torch.manual_seed(0)
    ours = wild(Precond(UNet(16, 3, **settings), UncertaintyHead(width), sigma_data)).state_dict()
    back = {here: there for there, here in PARAMETERS.items()}
    named = {}
    for name, value in ours.items():
        for here, there in back.items():
            if name.startswith(here):
                named[there + name.removeprefix(here)] = value
    return named


def expected(tensors, x, sigma, cond, sigma_data, **settings):
    s = sigma.view(-1, 1, 1, 1)
    total = s**2 + sigma_data**2
    unet = {
        name.removeprefix("unet."): value
        for name, value in tensors.items()
        if name.startswith("unet.")
    }
    F_x = twin(unet, x / total.sqrt(), sigma.log() / 4, cond, **settings)
    return sigma_data**2 / total * x + s * sigma_data / total.sqrt() * F_x


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("half", [False, True])
def test_a_snapshot_is_the_same_function_here(published, tmp_path, protocol, half):
    marker = tmp_path / "ran"
    tensors = weights(SETTINGS | {"features": 5})
    tensors = {name: value.half() if half else value for name, value in tensors.items()}
    kwargs = {
        "img_resolution": 16,
        "img_channels": 3,
        "label_dim": np.int64(5),
        "use_fp16": True,
        **SETTINGS,
    }
    network = original(tensors, f"open({str(marker)!r}, 'w')", (), kwargs)
    more = {
        "dataset_kwargs": {"path": "x", "size": np.arange(3)},
        "half": torch.float16,
        "shape": torch.Size([2]),
    }
    denoiser = import_edm2(published(network, protocol, **more))
    x, sigma, cond = torch.randn(2, 3, 16, 16), torch.tensor([0.3, 4.0]), torch.eye(5)[1:3]
    there = {name: value.float() for name, value in tensors.items()}
    for asked in (cond, None):
        value = expected(there, x, sigma, asked, 0.5, **SETTINGS)
        torch.testing.assert_close(denoiser(x, sigma, asked), value, rtol=1e-5, atol=1e-5)
    assert not marker.exists()
    assert not denoiser.training


def test_constructor_arguments_are_those_of_the_original(published):
    settings = {"model_channels": 8, "channel_mult": [2, 1, 1], "num_blocks": 2}
    settings |= {"attn_resolutions": [4]}
    settings |= {"channels_per_head": 4, "res_balance": 0.4, "clip_act": None, "label_balance": 0.2}
    tensors = weights(settings, 1.5, 16)
    named = {"logvar_channels": 16, "resample_filter": [1, 1], **settings}
    network = original(tensors, "", (16, 3, 0, False, 1.5), named)
    denoiser = import_edm2(published(network))
    x, sigma = torch.randn(2, 3, 16, 16), torch.tensor([0.3, 4.0])
    value = expected(tensors, x, sigma, None, 1.5, **settings)
    torch.testing.assert_close(denoiser(x, sigma, None), value, rtol=1e-5, atol=1e-5)
    features = torch.cos(
        sigma.log()[:, None] / 4 * tensors["logvar_fourier.freqs"]
        + tensors["logvar_fourier.phases"]
    )
    direction = tensors["logvar_linear.weight"][0]
    log_variance = features @ direction * 2**0.5 / (direction.norm() + 1e-4 * 16**0.5)
    torch.testing.assert_close(denoiser.log_variance(sigma), log_variance)


def test_every_published_name_has_its_place():
    """The tensors of a snapshot of the published layout, written out, and nothing else."""
    block = ("emb_gain", "conv_res0.weight", "emb_linear.weight", "conv_res1.weight")
    attention, skip = ("attn_qkv.weight", "attn_proj.weight"), ("conv_skip.weight",)
    layout = {
        "enc.16x16_block0": block + attention,
        "enc.8x8_down": block,
        "enc.8x8_block0": block + skip + attention,
        "dec.8x8_in0": block + attention,
        "dec.8x8_in1": block,
        "dec.8x8_block0": block + skip + attention,
        "dec.8x8_block1": block + skip + attention,
        "dec.16x16_up": block,
        "dec.16x16_block0": block + skip + attention,
        "dec.16x16_block1": block + skip + attention,
    }
    names = {f"unet.{place}.{leaf}" for place, leaves in layout.items() for leaf in leaves}
    names |= {"unet.out_gain", "unet.emb_fourier.freqs", "unet.emb_fourier.phases"}
    names |= {"unet.emb_noise.weight"}
    names |= {"unet.emb_label.weight", "unet.enc.16x16_conv.weight", "unet.out_conv.weight"}
    names |= {"logvar_fourier.freqs", "logvar_fourier.phases", "logvar_linear.weight"}
    assert weights(SETTINGS | {"features": 5}).keys() == names


class Call:
    """Pickles as a call of `function`."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def inside_a_storage(call: Call) -> Call:
    """The same call hidden in the bytes of a tensor's storage, where torch would unpickle it."""
    return Call(torch.storage._load_from_bytes, pickle.dumps(call, 2))


@pytest.mark.parametrize(
    "hide", [lambda call: call, inside_a_storage], ids=["open", "in a storage"]
)
@pytest.mark.parametrize(
    ("function", "name"),
    [(os.system, f"{os.name}.system"), (eval, "builtins.eval"), (os.makedirs, "os.makedirs")],
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_any_other_callable_is_refused_and_not_run(tmp_path, hide, function, name, protocol):
    marker, path = tmp_path / "ran", tmp_path / "snapshot.pkl"
    argument = f"__import__('os').mkdir({str(marker)!r})" if function is eval else str(marker)
    argument = f"mkdir {marker}" if function is os.system else argument
    path.write_bytes(pickle.dumps({"ema": hide(Call(function, argument))}, protocol))
    with pytest.raises(InputError, match=f"calls {name}, which no EDM2 snapshot needs"):
        import_edm2(path)
    assert not marker.exists()
    if hide is not inside_a_storage:  # torch has since closed that door
        pickle.loads(path.read_bytes())
        assert marker.exists(), "the file was harmless, so refusing it proves nothing"


def test_damaged_files_are_named(published, tmp_path):
    tensors = weights(SETTINGS)
    whole = published(original(tensors, "", (16, 3, 0), SETTINGS)).read_bytes()
    path = tmp_path / "other.pkl"
    contents = {
        length: whole[:length] for length in (0, 1, 10, 1000, len(whole) // 2, len(whole) - 1)
    }
    for content in [
        *contents.values(),
        b"not a pickle",
        b"PK\x03\x04",
        pickle.dumps([1]),
        pickle.dumps({"ema": 3}),
    ]:
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"other\.pkl"):
            import_edm2(path)
    with pytest.raises(InputError, match=r"missing\.pkl cannot be read"):
        import_edm2(tmp_path / "missing.pkl")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resample_filter": [1, 3, 3, 1]}, "resampling filter"),
        ({"novelty": 1}, "unknown argument novelty"),
        ({"num_blocks": 2}, "Missing key"),
        ({"model_channels": 16}, "size mismatch"),
    ],
)
def test_networks_we_do_not_have_are_refused(published, change, message):
    network = original(weights(SETTINGS), "", (16, 3, 0), SETTINGS | change)
    with pytest.raises(InputError, match=message):
        import_edm2(published(network))


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02Nr\xff\xff\xff\x0f.",  # kept in place 2^28 - 1 of the unpickler's table: 4 GB
        b"\x80\x05\x8e" + (2**31).to_bytes(8, "little") + b"short.",  # bytes of 2 GB
        b"\x80\x05\x96" + (2**31).to_bytes(8, "little") + b"short.",  # a bytearray of 2 GB
        b"\x80\x04\x95" + (2**31).to_bytes(8, "little") + b"short.",  # a frame of 2 GB
    ],
    ids=["table", "bytes", "bytearray", "frame"],
)
def test_a_short_file_takes_little_memory(tmp_path, content):
    path = tmp_path / "short.pkl"
    path.write_bytes(content)
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (now + 2**29, before[1]))
    try:
        with pytest.raises(InputError, match=r"short\.pkl is not a whole EDM2 snapshot") as refused:
            import_edm2(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert "MemoryError" not in str(refused.value)


def test_a_network_larger_than_its_file_is_refused_before_it_is_made(published):
    """A claim of a trillion weights, or of 10^7 blocks, beside tensors of another size."""
    for claim in ({"model_channels": 10**6}, {"num_blocks": 10**7}):
        network = original(weights(SETTINGS), "", (16, 3, 0), SETTINGS | claim)
        with pytest.raises(InputError, match=r"size mismatch|claims a network of"):
            import_edm2(published(network))


def test_a_tensor_cannot_be_larger_than_its_storage(tmp_path):
    """Strides of 0 make a terabyte of one number."""
    typed = torch.storage.TypedStorage(
        wrap_storage=torch.zeros(1).untyped_storage(), dtype=torch.float32, _internal=True
    )
    path = tmp_path / "wide.pkl"
    wide = Call(torch._utils._rebuild_tensor_v2, typed, 0, (2**40,), (0,), False, {})
    path.write_bytes(pickle.dumps({"ema": wide}))
    with pytest.raises(InputError, match="more elements than its storage"):
        import_edm2(path)


def test_an_address_is_not_a_file():
    with pytest.raises(InputError, match="is an address; download the snapshot"):
        import_edm2("https://example.org/edm2-img64-s.pkl")


def test_a_tensor_cannot_reach_beyond_its_storage(tmp_path):
    storage = torch.zeros(4).untyped_storage()
    typed = torch.storage.TypedStorage(wrap_storage=storage, dtype=torch.float32, _internal=True)
    path = tmp_path / "wide.pkl"
    beyond = Call(torch._utils._rebuild_tensor_v2, typed, 2, (3,), (1,), False, {})
    path.write_bytes(pickle.dumps({"ema": beyond}))
    with pytest.raises(InputError, match="beyond its storage"):
        import_edm2(path)
