"""Models of diffusers as denoisers; this file, text.py and features/sdxl.py alone know diffusers.

x0 = b x + c net(a x, t, class or text)       a, b, c, t: convention.py, by the scheduler"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from composcope.adapters import convention
from composcope.adapters.conditions import Classes
from composcope.adapters.prediction import Adapted, Shape, check_shape, pictures
from composcope.adapters.text import text
from composcope.diffusion.denoiser import Cond, X
from composcope.errors import InputError

# By the names that schedulers use.
PREDICTIONS = {"epsilon": convention.eps, "v_prediction": convention.v, "sample": convention.x0}
EDM_SIGNS = {"epsilon": 1, "v_prediction": -1}


def from_diffusers(
    source: Any, scheduler: Any = None, null_class: int | None = None, shape: Shape | None = None
) -> Adapted:
    """The Denoiser of a pipeline, or of a (network, scheduler), in its latents or pixels.

    Networks: UNet2DModel (with classes or without), UNet2DConditionModel (Stable Diffusion 1.5, 2
    and XL), DiTTransformer2DModel and SD3Transformer2DModel. Schedulers: all that have
    alphas_cumprod (DDPM, DDIM, Euler, DPM-Solver, ...), EDM's and flow matching.

    Between two training steps t is interpolated linearly in log sigma, but for networks with a
    table of time embeddings, which get the nearest step. What schedulers do beside the network's
    prediction (clipping or thresholding x0, guidance) is left out.

    null_class: the class that stands for no class, where a UNet2DModel was trained with one; a DiT
        knows its own.
    shape: of x, (channels, height, width), where it is not the network's `sample_size`.

    `conditioner` of what is returned is Classes, Phrases or None; None as cond asks for nothing.

        pipe = DiffusionPipeline.from_pretrained("stable-diffusion-v1-5/stable-diffusion-v1-5")
        denoiser = from_diffusers(pipe)
        asked = ("a cat on the left", "a dog on the right")

        images = draw(denoiser, [asked] * 4, seeds=range(4))
        x = 14.6 * torch.randn(1, *denoiser.shape)
        I = influence(denoiser, x, 14.6, denoiser.conditioner, asked)      # [phrase, height, width]

        prompt = Words("a cat left of a dog", denoiser.conditioner.encode) # word by word
        I = influence(denoiser, x, 14.6, prompt, prompt.all)               # [word, height, width]
    """
    importable()
    pipe, net, scheduler = parts_of(source, scheduler)
    net = getattr(net, "_orig_mod", net)  # the one inside what torch.compile made: it has gradients
    kind = kind_of(net)
    if null_class is not None and not (kind == "UNet2DModel" and net.config.num_class_embeds):
        raise InputError(f"null_class is for a UNet2DModel with classes, which this {kind} is not")
    shape = checked_shape(net, shape)
    arguments, conditioner = NETWORKS[kind](net, pipe, null_class, shape)
    vae = getattr(pipe, "vae", None) or getattr(pipe, "vqvae", None)
    real_times = net.config.get("time_embedding_type", "positional") != "learned"
    return Adapted(
        Network(net, arguments),
        convention_of(scheduler, real_times),
        conditioner,
        shape,
        pictures if vae is None else Decoder(vae),
        kind if pipe is None else str(pipe.config.get("_name_or_path") or type(pipe).__name__),
    )


def importable() -> None:
    """Import what pipelines need, or say what to install.

    A torchvision that was built for another torch breaks the import of diffusers and transformers,
    which do without one: hide it."""
    try:
        import torchvision  # noqa: F401
    except Exception:
        sys.modules["torchvision"] = None  # type: ignore[assignment]
    try:
        import transformers

        transformers.utils.logging.set_verbosity_error()  # it misses torchvision aloud
        import diffusers
    except ImportError as error:
        raise InputError(
            f"pipelines need diffusers and transformers ({error}): pip install 'composcope[sdxl]'"
        ) from None
    diffusers.utils.logging.set_verbosity_error()


def parts_of(source: Any, scheduler: Any) -> tuple[Any, Any, Any]:
    """The pipeline or None, its network, its scheduler."""
    from diffusers import DiffusionPipeline, SchedulerMixin

    if isinstance(source, DiffusionPipeline):
        parts = source.components
        net = parts.get("unet") or parts.get("transformer")
        if net is None:
            raise InputError(f"{type(source).__name__} has neither a unet nor a transformer")
        return source, net, scheduler or source.scheduler
    if isinstance(source, str):
        raise InputError(
            f"from_diffusers takes what is loaded: DiffusionPipeline.from_pretrained({source!r})"
        )
    if not isinstance(scheduler, SchedulerMixin):
        raise InputError(
            "from_diffusers takes a pipeline, or a network and its scheduler; the scheduler says "
            f"which noise the network was trained on, and it is {type(scheduler).__name__}"
        )
    return None, source, scheduler


def kind_of(net: Any) -> str:
    """The name of a network's class, or of the known one that it is made from."""
    for parent in type(net).__mro__:
        if parent.__name__ in NETWORKS:
            return parent.__name__
    raise InputError(
        f"the network {type(net).__name__} is not known; known are {', '.join(NETWORKS)}"
    )


def checked_shape(net: Any, shape: Shape | None) -> Shape | None:
    """Of x: what was given, else the network's own, if it has one."""
    channels, made = net.config.in_channels, net.config.out_channels
    if made not in (channels, 2 * channels):
        raise InputError(
            f"the network takes {channels} channels and predicts {made}: what it takes beside x, "
            "such as a mask or an image, is not known"
        )
    if shape is not None:
        check_shape(shape)
        if shape[0] != channels:
            raise InputError(f"shape is {shape}; the network takes {channels} channels")
        return shape
    size = net.config.sample_size
    if size is None:
        return None
    height, width = (size, size) if isinstance(size, int) else size
    return channels, height, width


def convention_of(scheduler: Any, real: bool) -> convention.Convention:
    """a, b, c and t of the noise that a scheduler stands for."""
    config = scheduler.config
    kind = type(scheduler).__name__
    predicts = config.get("prediction_type", "epsilon")
    flow = kind.startswith("FlowMatch")
    if bool(config.get("use_flow_sigmas")) != (predicts == "flow_prediction") and not flow:
        raise InputError(
            f"{kind} with the prediction {predicts!r} is not known; "
            "flow_prediction goes with use_flow_sigmas=True, and no other does"
        )
    if config.get("invert_sigmas"):
        raise InputError(f"{kind} with invert_sigmas is not known: its time runs the other way")
    if flow or predicts == "flow_prediction":
        return partial(convention.flow, float(config.num_train_timesteps))
    if kind.startswith("EDM") and predicts in EDM_SIGNS:
        return partial(convention.edm, float(config.sigma_data), EDM_SIGNS[predicts])
    if predicts not in PREDICTIONS or not hasattr(scheduler, "alphas_cumprod"):
        raise InputError(
            f"{kind} with the prediction {predicts!r} is not known; known are schedulers with "
            f"alphas_cumprod that predict {', '.join(PREDICTIONS)}, EDM's, and flow matching"
        )
    if config.get("timestep_type") == "continuous" and predicts == "v_prediction":
        return partial(convention.edm, 1.0, -1)  # trained at all noise levels, without a last step
    alphas = scheduler.alphas_cumprod.clone()
    if config.get("rescale_betas_zero_snr"):
        alphas[-1] = 0  # Euler and others write 2^-24, which can be above the alpha before it
    return partial(PREDICTIONS[predicts], convention.Steps(alphas, real))


# The arguments of a network beside x_t and t, made of x_t and cond.
Arguments = Callable[[X, Cond], dict[str, Any]]
Made = tuple[Arguments, Any]  # with the conditioner of that cond


@dataclass(frozen=True, eq=False)
class Network:
    """A network of diffusers as model(x_t, t, cond)."""

    net: Any
    arguments: Arguments

    def __call__(self, x_t: X, t: Tensor, cond: Cond = None) -> X:
        named = self.arguments(x_t, cond)
        F = self.net(x_t.to(self.net.dtype), timestep=t, **named).sample
        # Some have a variance as a second half.
        half = F.shape[1] == 2 * x_t.shape[1]
        return (F[:, : x_t.shape[1]] if half else F).to(x_t.dtype)


def unet(net: Any, pipe: Any, null_class: int | None, shape: Shape | None) -> Made:
    if net.config.class_embed_type is not None:
        raise InputError(f"class embeddings of type {net.config.class_embed_type!r} are not known")
    table = net.config.num_class_embeds
    if table is None:
        return nothing_asked, None
    if null_class is not None and not 0 <= null_class < table:
        raise InputError(f"null_class is {null_class}; the network has classes 0 to {table - 1}")
    last = null_class == table - 1  # usually: then the classes are those before it
    classes = Classes(table - 1 if last else table, null_class)
    return partial(class_arguments, classes), classes


def dit(net: Any, pipe: Any, null_class: int | None, shape: Shape | None) -> Made:
    count = net.config.num_embeds_ada_norm
    classes = Classes(count, null=count, names=getattr(pipe, "labels", {}))
    return partial(class_arguments, classes), classes


NETWORKS: dict[str, Callable[[Any, Any, int | None, Shape | None], Made]] = {
    "UNet2DModel": unet,
    "DiTTransformer2DModel": dit,
    "UNet2DConditionModel": text,
    "SD3Transformer2DModel": text,
}


def nothing_asked(x_t: X, cond: Cond) -> dict[str, Any]:
    if cond is not None:
        raise InputError("the network is unconditional: nothing can be asked of it")
    return {}


def class_arguments(classes: Classes, x_t: X, cond: Cond) -> dict[str, Any]:
    """Of a one-hot cond."""
    cond = classes([()]).expand(len(x_t), -1) if cond is None else cond
    if cond.shape[1] != classes.features:
        raise InputError(
            f"cond has {cond.shape[1]} features, not one for each of the network's "
            f"{classes.features} classes"
        )
    return {"class_labels": cond.argmax(1).to(x_t.device)}


@dataclass(frozen=True, eq=False)
class Decoder:
    """The pictures of latents, one at a time: they are large."""

    vae: Any

    @torch.no_grad()
    def __call__(self, x: X) -> UInt8[np.ndarray, "batch rows columns 3"]:
        given = self.vae.dtype
        vae = self.vae.float()  # SDXL's overflows in half precision
        config, latents = vae.config, x.to(vae.device, torch.float32)
        # One number, or one for each channel.
        std = latents.new_tensor(config.get("latents_std") or [1.0]).view(-1, 1, 1)
        mean = config.get("latents_mean") or [config.get("shift_factor") or 0.0]
        latents = latents * std / config.scaling_factor + latents.new_tensor(mean).view(-1, 1, 1)
        try:
            return np.concatenate([pictures(vae.decode(one).sample) for one in latents.split(1)])
        finally:
            vae.to(given)  # it is the pipeline's, which goes on drawing with it
