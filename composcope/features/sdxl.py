"""SDXL as the features need it: its denoiser, its layers, its sampler's noise levels, its words.

The denoiser itself is adapters/diffusers.py's; cond is one vector a prompt, the C of section G. Any
folder that StableDiffusionXLPipeline reads will do; one without an autoencoder holds pixels, r x r
of them folded into 3 r^2 channels, with their constants in a file."""

import math
import warnings
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from composcope.adapters.diffusers import from_diffusers, importable
from composcope.diffusion.denoiser import Wrapper, X
from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import noise
from composcope.errors import InputError
from composcope.features.capture import Read
from composcope.features.words import prompt_words
from composcope.files import SHIPPED
from composcope.tensors import read_tensors

BASE = "stabilityai/stable-diffusion-xl-base-1.0"
PARTS = ("down", "mid", "up")


def pipeline_folder(model: str) -> str:
    """A shipped pipeline by its name, else what was given: a folder or a name on the Hub."""
    shipped = SHIPPED / model / "model_index.json"
    return str(shipped.parent) if shipped.is_file() else model


def load(model: str, device: str = "cpu", dtype: torch.dtype = torch.float32) -> "SDXL":
    """A pipeline by folder, by shipped name or by its name on the Hub, from safetensors only."""
    importable()
    from diffusers import StableDiffusionXLPipeline

    source = pipeline_folder(model)
    constants = Path(source) / "pixels.safetensors"
    # diffusers asks to be told that there is no autoencoder.
    parts = {"vae": None} if constants.is_file() else {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipe = StableDiffusionXLPipeline.from_pretrained(
                source, torch_dtype=dtype, use_safetensors=True, add_watermarker=False, **parts
            )
    except Exception as error:  # diffusers, the hub client and safetensors each raise their own
        reason = str(error).splitlines()[0][:200]
        raise InputError(
            f"no SDXL pipeline could be read from {model!r} ({reason}); on a machine with a "
            f"network run `hf download {BASE} --local-dir FOLDER`, then give that folder: "
            "--sdxl FOLDER"
        ) from None
    return SDXL(pipe.to(device), read_tensors(constants) if parts else None)


class SDXL(Wrapper):
    """A Denoiser in latent space, for which None as cond asks for nothing as SDXL itself does.

    constants: of pixels, in place of an autoencoder."""

    def __init__(self, pipe: Any, constants: dict[str, Tensor] | None = None):
        if pipe.vae is None and constants is None:
            raise InputError("the pipeline has neither an autoencoder nor pixels.safetensors")
        pipe.set_progress_bar_config(disable=True)
        for part in (pipe.unet, pipe.text_encoder, pipe.text_encoder_2):
            part.eval().requires_grad_(False)
        adapted = from_diffusers(pipe)
        if constants is not None:
            adapted.decode = partial(unfolded, constants)
        super().__init__(adapted)
        self.pipe = pipe
        self.unet: nn.Module = pipe.unet

    @property
    def device(self) -> torch.device:
        return next(self.unet.parameters()).device

    def encode(self, prompts: Sequence[str]) -> Float[Tensor, "prompts features"]:
        """cond of each prompt, by both text encoders, for a whole image of the model's size."""
        return self.conditioner.encode(prompts)

    @cached_property
    def scheduler(self) -> Any:
        """Euler's scheduler over the pipeline's own noise, which is the one the paper runs."""
        from diffusers import EulerDiscreteScheduler

        return EulerDiscreteScheduler.from_config(self.pipe.scheduler.config)

    def levels(self, steps: int) -> Float[Tensor, " levels"]:
        """The scheduler's own sigmas for this many steps, 0 last."""
        self.scheduler.set_timesteps(steps)
        return self.scheduler.sigmas.clone()

    def start(self, seeds: Sequence[int], steps: int) -> X:
        """Where the scheduler begins; each latent from its own seed."""
        self.scheduler.set_timesteps(steps)
        return noise(seeds, self.shape).to(self.device) * float(self.scheduler.init_noise_sigma)

    @property
    def transformer_blocks(self) -> tuple[str, ...]:
        """Down, mid and up; the output of each is the hidden state after the feed-forward."""
        modules = self.unet.named_modules()
        found = [name for name, m in modules if type(m).__name__ == "BasicTransformerBlock"]
        return tuple(sorted(found, key=lambda name: PARTS.index(part_of(name))))

    def token(self, prompt: str, word: str) -> int:
        """The place of a word's last token; that of the end for the empty prompt (section G)."""
        if not prompt:
            return 1
        at = next((w for w in prompt_words(prompt) if word.lower() == w.text.lower()), None)
        if at is None:
            raise InputError(f"the word {word!r} is not in the prompt {prompt!r}")
        return len(self.pipe.tokenizer(prompt[: at.end]).input_ids) - 2


def unfolded(constants: dict[str, Tensor], x: X) -> UInt8[np.ndarray, "batch rows columns 3"]:
    """The pictures of pixels that were folded into channels."""
    fold = math.isqrt(x.shape[1] // 3)
    pixels = Pixels(constants["centre"], float(constants["scale"]))
    return pixels.decode(F.pixel_shuffle(x.cpu(), fold))


def part_of(layer: str) -> str:
    """down, mid or up."""
    return layer.partition("_")[0]


def attention_to(token: int) -> Read:
    """One token's cross-attention map: softmax(q k^T / sqrt(width)) there, mean over heads."""

    def read(attn: Any, args: tuple, named: dict, result: Any) -> Float[Tensor, "batch places 1"]:
        q, k = attn.to_q(args[0]), attn.to_k(named["encoder_hidden_states"])
        q, k = (t.unflatten(2, (attn.heads, -1)).transpose(1, 2) for t in (q, k))
        return (q @ k.mT * attn.scale).softmax(dim=-1)[..., token].mean(1)[..., None]

    return read
