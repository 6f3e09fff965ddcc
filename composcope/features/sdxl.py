"""SDXL as a Denoiser of its latents; the only file that knows diffusers.

    x = x0 + sigma eps,   F = unet(x / sqrt(sigma^2 + 1), t(sigma), text)
    x0 = x - sigma F (epsilon-prediction)   or   x / (sigma^2 + 1) - F sigma / sqrt(sigma^2 + 1) (v-prediction)

cond is one vector a prompt, [embeddings of the tokens by both encoders | pooled embedding | time ids], which is the
C = {text_embeds, pooled_embeds, time_ids} of section G. Any folder that StableDiffusionXLPipeline reads will do; one
without an autoencoder holds pixels, r x r of them folded into 3 r^2 channels, with their constants in a file.
"""

import logging
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from safetensors.torch import load_file
from torch import Tensor, nn

from composcope.diffusion.denoiser import Cond, Sigmas, X
from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import noise
from composcope.errors import InputError
from composcope.features.capture import Read
from composcope.features.words import words

BASE = "stabilityai/stable-diffusion-xl-base-1.0"
SHIPPED = Path(__file__).parents[1] / "models"
PARTS = ("down", "mid", "up")


def quiet() -> None:
    """Import what diffusers needs, or say what to install.

    A torchvision built for another torch breaks the import of transformers, which needs none of it here: hide it.
    """
    try:
        import torchvision  # noqa: F401
    except Exception:
        sys.modules["torchvision"] = None  # type: ignore[assignment]
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        import diffusers
        import transformers  # noqa: F401
    except ImportError as error:
        raise InputError(f"SDXL needs diffusers and transformers ({error}): pip install 'composcope[sdxl]'") from None
    diffusers.utils.logging.set_verbosity_error()


def folder_of(model: str) -> str:
    """A shipped pipeline by its name, else what was given: a folder or a name on the Hub."""
    shipped = SHIPPED / model / "model_index.json"
    return str(shipped.parent) if shipped.is_file() else model


def load(model: str, device: str = "cpu", dtype: torch.dtype = torch.float32) -> "SDXL":
    """A pipeline by folder, by shipped name or by its name on the Hub; weights are read from safetensors only."""
    quiet()
    from diffusers import StableDiffusionXLPipeline

    source = folder_of(model)
    constants = Path(source) / "pixels.safetensors"
    parts = {"vae": None} if constants.is_file() else {}  # diffusers asks to be told that there is none
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipe = StableDiffusionXLPipeline.from_pretrained(
                source, torch_dtype=dtype, use_safetensors=True, add_watermarker=False, **parts
            )
    except Exception as error:  # diffusers, the hub client and safetensors each raise their own
        raise InputError(
            f"no SDXL pipeline could be read from {model!r} ({str(error).splitlines()[0][:200]}); on a machine with a "
            f"network run `hf download {BASE} --local-dir FOLDER`, then give that folder: --sdxl FOLDER"
        ) from None
    return SDXL(pipe.to(device), load_file(constants) if parts else None)


@dataclass(frozen=True, eq=False)
class SDXL:
    """A Denoiser in latent space. x and cond are single precision; the U-Net computes in its own."""

    pipe: Any
    constants: dict[str, Tensor] | None = None  # of pixels, in place of an autoencoder

    def __post_init__(self) -> None:
        self.pipe.set_progress_bar_config(disable=True)
        for part in (self.unet, self.pipe.text_encoder, self.pipe.text_encoder_2):
            part.eval().requires_grad_(False)
        if self.prediction not in ("epsilon", "v_prediction"):
            raise InputError(f"the pipeline predicts {self.prediction!r}; epsilon and v_prediction are understood")
        if self.pipe.vae is None and self.constants is None:
            raise InputError("the pipeline has neither an autoencoder nor pixels.safetensors")

    @property
    def unet(self) -> nn.Module:
        return self.pipe.unet

    @property
    def device(self) -> torch.device:
        return next(self.unet.parameters()).device

    @property
    def prediction(self) -> str:
        return self.pipe.scheduler.config.prediction_type

    @property
    def shape(self) -> tuple[int, int, int]:
        side = self.unet.config.sample_size
        return self.unet.config.in_channels, side, side

    @property
    def size(self) -> int:
        """Pixels a side, as the time ids say it."""
        return self.unet.config.sample_size * self.pipe.vae_scale_factor

    @cached_property
    def scheduler(self) -> Any:
        """Euler's scheduler over the pipeline's own noise, which is the one the paper runs."""
        from diffusers import EulerDiscreteScheduler

        return EulerDiscreteScheduler.from_config(self.pipe.scheduler.config)

    @cached_property
    def table(self) -> Float[Tensor, " timesteps"]:
        """sigma of every training step, in the scheduler's own arithmetic so that t(sigma) gives back whole steps."""
        return (((1 - self.scheduler.alphas_cumprod) / self.scheduler.alphas_cumprod) ** 0.5).to(self.device)

    def timestep(self, sigma: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """The step of a noise level: linear in log sigma between the steps of training."""
        if self.scheduler.config.timestep_type == "continuous" and self.prediction == "v_prediction":
            return 0.25 * sigma.log()
        low = (torch.searchsorted(self.table, sigma.contiguous(), right=True) - 1).clamp(0, len(self.table) - 2)
        log = self.table.log()
        return low + ((sigma.log() - log[low]) / (log[low + 1] - log[low])).clamp(0, 1)

    def __call__(self, x: X, sigma: Sigmas, cond: Cond) -> X:
        """x0; cond None is SDXL's own notion of nothing asked."""
        cond = self.nothing.expand(len(x), -1) if cond is None else cond
        dtype, (tokens, width, pooled) = self.unet.dtype, self.widths
        text, said, time_ids = cond.to(dtype).split([tokens * width, pooled, 6], dim=1)
        s = sigma[:, None, None, None]
        scaled = (x / (s**2 + 1).sqrt()).to(dtype)
        F_x = self.unet(
            scaled,
            self.timestep(sigma),
            text.unflatten(1, (tokens, width)),
            added_cond_kwargs={"text_embeds": said, "time_ids": time_ids},
        ).sample.to(x.dtype)
        if self.prediction == "epsilon":
            return x - s * F_x
        return x / (s**2 + 1) - F_x * s / (s**2 + 1).sqrt()

    @property
    def widths(self) -> tuple[int, int, int]:
        """Tokens, features of a token, features of the pooled embedding."""
        tokens = self.pipe.tokenizer.model_max_length
        return tokens, self.unet.config.cross_attention_dim, self.pipe.text_encoder_2.config.projection_dim

    @torch.no_grad()
    def encode(self, prompts: Sequence[str]) -> Float[Tensor, "prompts features"]:
        """cond of each prompt, by both text encoders, for a whole image of the model's size."""
        for prompt in prompts:
            if (said := len(self.pipe.tokenizer(prompt).input_ids)) > self.pipe.tokenizer.model_max_length:
                raise InputError(f"the prompt {prompt[:40]!r}... has {said} tokens, more than the encoders read")
        text, _, pooled, _ = self.pipe.encode_prompt(list(prompts), do_classifier_free_guidance=False)
        ids = torch.tensor([self.size, self.size, 0, 0, self.size, self.size], device=text.device)
        return torch.cat([text.flatten(1), pooled, ids.expand(len(prompts), -1)], dim=1).float()

    @cached_property
    def nothing(self) -> Float[Tensor, "1 features"]:
        """What guidance steers away from: zeros or the empty prompt, as the pipeline was trained."""
        empty = self.encode([""])
        if self.pipe.config.force_zeros_for_empty_prompt:
            empty[:, :-6] = 0
        return empty

    def levels(self, steps: int) -> Float[Tensor, " levels"]:
        """The scheduler's own sigmas for this many steps, 0 last."""
        self.scheduler.set_timesteps(steps)
        return self.scheduler.sigmas.clone()

    def start(self, seeds: Sequence[int], steps: int) -> X:
        """Where the scheduler begins; each latent from its own seed."""
        self.scheduler.set_timesteps(steps)
        return noise(seeds, self.shape).to(self.device) * float(self.scheduler.init_noise_sigma)

    @torch.no_grad()
    def decode(self, x: X) -> UInt8[np.ndarray, "batch rows columns 3"]:
        return np.concatenate([self._decode(one) for one in x.split(1)])

    def _decode(self, x: X) -> UInt8[np.ndarray, "batch rows columns 3"]:
        if self.constants is not None:
            fold = math.isqrt(x.shape[1] // 3)
            pixels = Pixels(self.constants["centre"], float(self.constants["scale"]))
            return pixels.decode(F.pixel_shuffle(x.cpu(), fold))
        vae = self.pipe.vae.float()  # its half precision overflows
        images = vae.decode(x.float() / vae.config.scaling_factor).sample
        return ((images + 1) * 127.5).round().clamp(0, 255).byte().permute(0, 2, 3, 1).cpu().numpy()

    @property
    def transformer_blocks(self) -> tuple[str, ...]:
        """Every BasicTransformerBlock, down, mid and up; its output is the hidden state after the feed-forward."""
        found = [name for name, m in self.unet.named_modules() if type(m).__name__ == "BasicTransformerBlock"]
        return tuple(sorted(found, key=lambda name: PARTS.index(part_of(name))))

    def token(self, prompt: str, word: str) -> int:
        """The place of a word's last token among the tokens; that of the end for the empty prompt (section G)."""
        if not prompt:
            return 1
        at = next((w for w in words(prompt) if word.lower() == w.text.lower()), None)
        if at is None:
            raise InputError(f"the word {word!r} is not in the prompt {prompt!r}")
        return len(self.pipe.tokenizer(prompt[: at.end]).input_ids) - 2


def part_of(layer: str) -> str:
    """down, mid or up."""
    return layer.partition("_")[0]


def attention_to(token: int) -> Read:
    """The cross-attention map of one token, averaged over heads: softmax(q k^T / sqrt(width)) at that token."""

    def read(attn: Any, args: tuple, named: dict, result: Any) -> Float[Tensor, "batch places 1"]:
        q, k = attn.to_q(args[0]), attn.to_k(named["encoder_hidden_states"])
        q, k = (t.unflatten(2, (attn.heads, -1)).transpose(1, 2) for t in (q, k))
        return (q @ k.mT * attn.scale).softmax(dim=-1)[..., token].mean(1)[..., None]

    return read
