"""Published EDM2 snapshots as denoisers, read without running anything in them.

A snapshot is a pickle, dict(ema=network, ...), whose every module is one call of
`_reconstruct_persistent_obj` on {class_name, module_src, state}. The unpickler here knows by name
the few callables such a file needs and has an inert stand-in for each: tensors and constructor
arguments are kept, source text is dropped, any other callable is refused. What the file claims (a
storage's length, a network's size) is checked against what it holds before memory is taken for it.

    ours["net." + name] = theirs["unet." + name]          (the whole table: PARAMETERS)"""

import io
import math
import mmap
import pickle
import pickletools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from composcope.diffusion.denoiser import Precond
from composcope.errors import InputError
from composcope.nets import UncertaintyHead, UNet

PARAMETERS = {
    "unet.": "net.",
    "logvar_fourier.": "uncertainty.fourier.",
    "logvar_linear.": "uncertainty.linear.",
}
# Their arguments: those that we call otherwise, those given by position, those called the same.
ARGUMENTS = {"img_resolution": "resolution", "img_channels": "channels", "label_dim": "features"}
POSITIONAL = (*ARGUMENTS, "use_fp16", "sigma_data", "logvar_channels")
for names in (
    "model_channels channel_mult channel_mult_noise channel_mult_emb num_blocks attn_resolutions",
    "label_balance concat_balance channels_per_head dropout res_balance attn_balance clip_act",
):
    ARGUMENTS |= {name: name for name in names.split()}
MODULES = 100_000  # more than any network of this kind has
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
    """A module of the snapshot: the name of its class, and its state.

    The state has its parameters, buffers, modules and constructor arguments."""

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Tensors by their names; a module that many others share is gone through for each."""
        rest = [("", self)]
        seen = 0
        while rest:
            prefix, module = rest.pop()
            seen += 1
            if seen > MODULES:
                raise InputError(f"has more than {MODULES} modules")
            for kind in ("_parameters", "_buffers"):
                for name, value in module.state.get(kind, {}).items():
                    if isinstance(value, Tensor):
                        yield f"{prefix}{name}", value
            for name, inner in module.state.get("_modules", {}).items():
                if isinstance(inner, Network):
                    rest.append((f"{prefix}{name}.", inner))


def reconstruct(meta: dict) -> Network:
    """In place of `_reconstruct_persistent_obj`, which would execute meta["module_src"]."""
    network = Network(string_of(meta["class_name"]))
    network.state = meta["state"]
    return network


def tensor(storage: Tensor, offset: int, size: tuple, stride: tuple, *_: Any) -> Tensor:
    """In place of `torch._utils._rebuild_tensor_v2`, which returns a view of a storage."""
    needed = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
    if 0 not in size and not (0 <= offset < needed <= len(storage)):
        raise ValueError("a tensor reaches beyond its storage")
    if math.prod(size) > len(storage):
        raise ValueError("a tensor has more elements than its storage")
    return storage.as_strided(size, stride, offset)


def storage(data: bytes) -> Tensor:
    """In place of `torch.storage._load_from_bytes`, which would unpickle `data` without restraint.

    `data` is torch.save's stream for one storage: magic number, version and system as pickles, the
    storage's description, the list of keys, and then its number of elements and the elements, all
    little-endian."""
    stream = io.BytesIO(data)
    _magic, _version, _system, described, _keys = (unpickled(stream) for _ in range(5))
    count = int.from_bytes(stream.read(8), "little")
    if count * described.itemsize > len(data):
        raise ValueError("a storage is longer than the file")
    if not count:
        return torch.empty(0, dtype=described)
    return torch.frombuffer(bytearray(stream.read(count * described.itemsize)), dtype=described)


def numpy_scalar(dtype: Inert, data: bytes) -> Any:
    """In place of numpy's `scalar`."""
    return np.frombuffer(data, string_of(dtype.args[0]))[0].item()


def string_of(value: Any) -> str:
    """A string of the file; anything else may be nested so deep that to print it takes for ever."""
    if not isinstance(value, str):
        raise pickle.UnpicklingError("a name is not a string")
    return value


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
    # how old protocols spell bytes
    "_codecs.encode": lambda string_of, coding: str(string_of).encode("latin1"),
}
KNOWN |= {f"torch.{name}": dtype for name, dtype in STORAGES.items()}
KNOWN |= {str(dtype): str(dtype).removeprefix("torch.") for dtype in STORAGES.values()}
for core in ("numpy.core", "numpy._core"):
    KNOWN |= {f"{core}.multiarray._reconstruct": Inert, f"{core}.numeric._frombuffer": Inert}
    KNOWN |= {f"{core}.multiarray.scalar": numpy_scalar}


class Restricted(pickle.Unpickler):
    """Resolves the callables of KNOWN to their stand-ins and refuses every other, uncalled."""

    def find_class(self, module: str, name: str) -> Any:
        module = "builtins" if module == "__builtin__" else module  # as old protocols spell it
        if (full := f"{module}.{name}") not in KNOWN:
            reason = "which no EDM2 snapshot needs; nothing in the file was run"
            raise InputError(f"calls {full}, {reason}")
        return KNOWN[full]

    def persistent_load(self, pid: Any) -> torch.dtype:
        """The description of a storage in its own stream: ("storage", type, key, device, ...)."""
        kind, dtype = pid[:2]
        if kind != "storage" or not isinstance(dtype, torch.dtype):
            raise pickle.UnpicklingError("unknown reference to a storage")
        return dtype


def unpickled(stream: io.BytesIO | mmap.mmap) -> Any:
    """One pickle, if all that it claims is there.

    A few bytes can ask the unpickler for gigabytes: a string's length, or a place in its table of
    known objects, which it makes as long as the place is far. Both are looked at first."""
    start = stream.tell()
    codes = pickletools.genops(stream)  # type: ignore[arg-type]
    for count, (code, value, _) in enumerate(codes):
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(value or 0) > count:
            raise pickle.UnpicklingError("an object is kept in a place far beyond the others")
    stream.seek(start)
    return Restricted(stream).load()  # type: ignore[arg-type]


def read_snapshot(path: str | Path) -> Network:
    """The network `ema` of a snapshot."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
        network = unpickled(held)["ema"]
    if not isinstance(network, Network) or network.args != ("Precond",):
        raise InputError("does not hold an EDM2 network (Precond) as its ema")
    return network


def rebuilt(network: Network) -> Precond:
    """Our denoiser with the arguments and the weights of the original."""
    positional = zip(POSITIONAL, network.state["_init_args"], strict=False)
    given = dict(positional) | dict(network.state["_init_kwargs"])
    sigma_data = float(given.pop("sigma_data", 0.5))
    width = int(given.pop("logvar_channels", 128))
    given.pop("use_fp16", None)  # computed in float32 here
    if list(given.pop("resample_filter", [1, 1])) != [1, 1]:
        raise InputError("was made with a resampling filter other than [1, 1]")
    if unknown := given.keys() - ARGUMENTS.keys():
        raise InputError(f"was made with the unknown argument {min(unknown)}")
    weights = {renamed(name): value.float() for name, value in network.named_tensors()}
    blocks = len(given.get("channel_mult") or (1,)) * int(given.get("num_blocks", 1))
    if blocks > len(weights):
        raise InputError(f"claims a network of {blocks} blocks and holds {len(weights)} tensors")

    # Without memory for its weights until their shapes are known to be those of the file.
    with torch.device("meta"):
        unet = UNet(**{ARGUMENTS[name]: value for name, value in given.items()})
        denoiser = Precond(unet, UncertaintyHead(width), sigma_data)
    weights["sigma_data"] = torch.tensor(sigma_data)
    denoiser.load_state_dict(weights, assign=True)
    return denoiser


def renamed(name: str) -> str:
    for theirs, ours in PARAMETERS.items():
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name


def import_edm2(path: str | Path) -> Precond:
    """The denoiser of an official EDM2 snapshot, in float32: its function, none of its code run."""
    if "://" in str(path):
        raise InputError(f"{path} is an address; download the snapshot and give the file")
    try:
        return rebuilt(read_snapshot(path)).eval().requires_grad_(False)
    except InputError as refused:
        raise InputError(f"{path} {refused}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # an unpickler of damaged bytes, and what it yields, may raise any
        reason = " ".join(str(error).split())[:300]
        kind = type(error).__name__
        raise InputError(f"{path} is not a whole EDM2 snapshot ({kind}: {reason})") from None
