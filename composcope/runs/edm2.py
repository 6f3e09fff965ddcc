"""Published EDM2 snapshots as denoisers, read without running anything in them.

A snapshot is a pickle, dict(ema=network, ...), whose every module is one call of `_reconstruct_persistent_obj` on
{class_name, module_src, state}. The unpickler here knows by name the few callables such a file needs and has an inert
stand-in for each: tensors and constructor arguments are kept, source text is dropped, any other callable is refused.

    ours["net." + name] = theirs["unet." + name]          (the whole table: PARAMETERS)
"""

import io
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from composcope.diffusion.denoiser import Precond
from composcope.errors import InputError
from composcope.nets import UncertaintyHead, UNet

PARAMETERS = {"unet.": "net.", "logvar_fourier.": "uncertainty.fourier.", "logvar_linear.": "uncertainty.linear."}
POSITIONAL = ("img_resolution", "img_channels", "label_dim", "use_fp16", "sigma_data", "logvar_channels")
ARGUMENTS = {"img_resolution": "resolution", "img_channels": "channels", "label_dim": "features"} | {
    name: name
    for name in (
        *("model_channels", "channel_mult", "channel_mult_noise", "channel_mult_emb", "num_blocks", "attn_resolutions"),
        *("label_balance", "concat_balance", "channels_per_head", "dropout", "res_balance", "attn_balance", "clip_act"),
    )
}
STORAGES = {
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "BoolStorage": torch.bool,
}


class Inert:
    """Stands for any object of the snapshot: it keeps what it was made from and does nothing."""

    args: tuple
    state: Any

    def __new__(cls, *args: Any) -> "Inert":
        inert = super().__new__(cls)
        inert.args, inert.state = args, {}
        return inert

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Dict(dict):
    """Stands for OrderedDict and EasyDict; what the original sets as attributes is not kept."""

    def __setstate__(self, state: Any) -> None:
        pass


class Network(Inert):
    """A module of the snapshot: the name of its class and its state (parameters, buffers, modules, arguments)."""

    def named_tensors(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        for kind in ("_parameters", "_buffers"):
            for name, value in self.state.get(kind, {}).items():
                if isinstance(value, Tensor):
                    yield prefix + name, value
        for name, module in self.state.get("_modules", {}).items():
            if isinstance(module, Network):
                yield from module.named_tensors(f"{prefix}{name}.")


def reconstruct(meta: dict) -> Network:
    """In place of `_reconstruct_persistent_obj`, which would execute meta["module_src"]."""
    network = Network(str(meta["class_name"]))
    network.state = meta["state"]
    return network


def tensor(storage: Tensor, offset: int, size: tuple, stride: tuple, *_: Any) -> Tensor:
    """In place of `torch._utils._rebuild_tensor_v2`, which returns a view of a storage."""
    needed = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
    if 0 not in size and not (0 <= offset < needed <= len(storage)):
        raise ValueError("a tensor reaches beyond its storage")
    return storage.as_strided(size, stride, offset)


def storage(data: bytes) -> Tensor:
    """In place of `torch.storage._load_from_bytes`, which would unpickle `data` without restraint.

    `data` is torch.save's stream for one storage: magic number, version and system as pickles, the storage's
    description, the list of keys, and then its number of elements and the elements, all little-endian.
    """
    stream = io.BytesIO(data)
    _magic, _version, _system, described, _keys = (Restricted(stream).load() for _ in range(5))
    count = int.from_bytes(stream.read(8), "little")
    raw = stream.read(count * described.itemsize)
    return torch.frombuffer(bytearray(raw), dtype=described) if count else torch.empty(0, dtype=described)


def number(dtype: Inert, data: bytes) -> Any:
    """In place of numpy's `scalar`."""
    return np.frombuffer(data, str(dtype.args[0]))[0].item()


KNOWN: dict[str, Any] = {
    "torch_utils.persistence._reconstruct_persistent_obj": reconstruct,
    "torch.storage._load_from_bytes": storage,
    "torch._utils._rebuild_tensor_v2": tensor,
    "torch._utils._rebuild_parameter": lambda data, *_: data,
    "torch.nn.modules.container.ModuleDict": Network,
    "torch.nn.modules.container.ModuleList": Network,
    "torch.nn.modules.container.Sequential": Network,
    "torch.Size": tuple,
    "torch.device": Inert,
    "collections.OrderedDict": Dict,
    "dnnlib.util.EasyDict": Dict,
    "builtins.set": set,
    "numpy.dtype": Inert,
    "numpy.ndarray": Inert,
    "_codecs.encode": lambda text, coding: str(text).encode("latin1"),  # how old protocols spell bytes
}
KNOWN |= {f"torch.{name}": dtype for name, dtype in STORAGES.items()}
KNOWN |= {f"torch.{name}": name for name in ("float16", "bfloat16", "float32", "float64", "int64", "int32", "bool")}
for core in ("numpy.core", "numpy._core"):
    KNOWN |= {f"{core}.multiarray._reconstruct": Inert, f"{core}.numeric._frombuffer": Inert}
    KNOWN |= {f"{core}.multiarray.scalar": number}


class Restricted(pickle.Unpickler):
    """Resolves the callables of KNOWN to their stand-ins and refuses every other, before anything is called."""

    def find_class(self, module: str, name: str) -> Any:
        module = "builtins" if module == "__builtin__" else module  # as old protocols spell it
        if (full := f"{module}.{name}") not in KNOWN:
            raise InputError(f"calls {full}, which no EDM2 snapshot needs; nothing in the file was run")
        return KNOWN[full]

    def persistent_load(self, pid: Any) -> torch.dtype:
        """The description of a storage within its own stream: ("storage", type, key, device, elements, view)."""
        kind, dtype = pid[:2]
        if kind != "storage" or not isinstance(dtype, torch.dtype):
            raise pickle.UnpicklingError(f"unknown reference {kind!r}")
        return dtype


def read(path: str | Path) -> Network:
    """The network `ema` of a snapshot."""
    with open(path, "rb") as file:
        network = Restricted(file).load()["ema"]
    if not isinstance(network, Network) or network.args != ("Precond",):
        raise InputError("does not hold an EDM2 network (Precond) as its ema")
    return network


def rebuilt(network: Network) -> Precond:
    """Our denoiser with the arguments and the weights of the original."""
    given = dict(zip(POSITIONAL, network.state["_init_args"], strict=False)) | dict(network.state["_init_kwargs"])
    sigma_data, width = float(given.pop("sigma_data", 0.5)), int(given.pop("logvar_channels", 128))
    given.pop("use_fp16", None)  # computed in float32 here
    if list(given.pop("resample_filter", [1, 1])) != [1, 1]:
        raise InputError("was made with a resampling filter other than [1, 1]")
    if unknown := given.keys() - ARGUMENTS.keys():
        raise InputError(f"was made with the unknown argument {min(unknown)}")
    unet = UNet(**{ARGUMENTS[name]: value for name, value in given.items()})
    denoiser = Precond(unet, UncertaintyHead(width), sigma_data)
    weights = {renamed(name): value.float() for name, value in network.named_tensors()}
    denoiser.load_state_dict(weights | {"sigma_data": denoiser.sigma_data})
    return denoiser


def renamed(name: str) -> str:
    for theirs, ours in PARAMETERS.items():
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name


def import_edm2(path: str | Path) -> Precond:
    """The denoiser of an official EDM2 snapshot, in float32: the original's function, none of its code run."""
    try:
        return rebuilt(read(path)).eval().requires_grad_(False)
    except InputError as refused:
        raise InputError(f"{path} {refused}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # damaged bytes can make an unpickler, and what it yields, raise anything
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"{path} is not a whole EDM2 snapshot ({type(error).__name__}: {reason})") from None
