"""The text of diffusers' models: what their networks take of it, and prompts as cond.

cond = [embeddings of the tokens | pooled | time ids]          (C of section G)"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from composcope.adapters.conditions import Phrases
from composcope.adapters.prediction import Shape
from composcope.diffusion.denoiser import Cond, X
from composcope.errors import InputError

# Settings of networks that take nothing beside text: others need images, guidance or classes.
TEXT_ALONE: dict[str, tuple] = {
    "class_embed_type": (None,),
    "num_class_embeds": (None,),
    "encoder_hid_dim": (None,),
    "time_cond_proj_dim": (None,),
    "addition_embed_type": (None, "text", "text_time"),
}


def text(net: Any, pipe: Any, null_class: int | None, shape: Shape | None) -> tuple[Any, Any]:
    for name, known in TEXT_ALONE.items():
        if net.config.get(name) not in known:
            what = f"a {type(net).__name__} with {name} = {net.config[name]!r}"
            raise InputError(f"{what} is not known: it takes more than the embedding of a text")
    if not isinstance(net.config.get("cross_attention_dim", 0), int):
        raise InputError(f"a {type(net).__name__} with tokens of several widths is not known")
    encoder = None if pipe is None else Encoder(pipe, shape)
    return partial(text_arguments, net, encoder), None if encoder is None else Phrases(encoder)


def text_arguments(net: Any, encoder: "Encoder | None", x_t: X, cond: Cond) -> dict[str, Any]:
    """Of cond; Stable Diffusion 1.5 and 2 have its first part alone, 3 the first two."""
    if cond is None:
        if encoder is None:
            raise InputError("the network takes text: give cond, or make it from a whole pipeline")
        cond = encoder.nothing.expand(len(x_t), -1)
    token, pooled, ids = text_widths(net)
    tokens, rest = divmod(cond.shape[1] - pooled - ids, token)
    if tokens < 1 or rest:
        raise InputError(
            f"cond has {cond.shape[1]} features; the network takes tokens of {token} features "
            f"each, and {pooled + ids} more"
        )
    cond = cond.to(x_t.device, net.dtype)
    words, whole, time_ids = cond.split([tokens * token, pooled, ids], dim=1)
    named: dict[str, Any] = {"encoder_hidden_states": words.unflatten(1, (tokens, token))}
    if ids:
        named["added_cond_kwargs"] = {"text_embeds": whole, "time_ids": time_ids}
    elif pooled:
        named["pooled_projections"] = whole
    return named


def text_widths(net: Any) -> tuple[int, int, int]:
    """Features of a token, of the pooled embedding, and of the time ids."""
    config = net.config
    if config.get("joint_attention_dim"):  # Stable Diffusion 3
        return config.joint_attention_dim, config.pooled_projection_dim, 0
    if config.addition_embed_type != "text_time":
        return config.cross_attention_dim, 0, 0
    ids = 6 * config.addition_time_embed_dim
    return config.cross_attention_dim, config.projection_class_embeddings_input_dim - ids, 6


@dataclass(frozen=True, eq=False)
class Encoder:
    """The text encoders of a pipeline: prompts -> cond, in single precision."""

    pipe: Any
    shape: Shape | None  # of x

    def __post_init__(self) -> None:
        kind, parts = type(self.pipe).__name__, self.pipe.components
        if not parts.get("tokenizer") or not hasattr(self.pipe, "encode_prompt"):
            raise InputError(f"{kind} has no tokenizer and encode_prompt to read text with")
        more = [name for name in ("controlnet", "adapter") if parts.get(name)]
        if more:
            raise InputError(
                f"{kind} has a {more[0]}, which is not known; give its unet and its scheduler"
            )

    @torch.no_grad()
    def __call__(self, prompts: Sequence[str]) -> Float[Tensor, "prompts features"]:
        most = self.pipe.tokenizer.model_max_length
        for prompt in prompts:
            count = len(self.pipe.tokenizer(prompt).input_ids)
            if count > most:
                words = f"the prompt {prompt[:40]!r}... has {count} tokens"
                raise InputError(f"{words}, more than the encoders read ({most})")
        third = {"prompt_2": None, "prompt_3": None} if hasattr(self.pipe, "tokenizer_3") else {}
        made = self.pipe.encode_prompt(
            prompt=list(prompts),
            device=self.pipe.device,
            num_images_per_prompt=1,
            do_classifier_free_guidance=False,
            **third,
        )
        parts = [made[0].flatten(1)]
        if len(made) == 4:
            parts.append(made[2])
        unet = self.pipe.components.get("unet")
        if unet is not None and unet.config.addition_embed_type == "text_time":
            parts.append(self.time_ids.expand(len(prompts), -1))
        return torch.cat(parts, dim=1).float()

    @property
    def time_ids(self) -> Float[Tensor, " 6"]:
        """Height and width in pixels, of a whole picture that was never larger."""
        if self.shape is None:
            raise InputError("the network is told the size: give shape=(channels, height, width)")
        size = [float(side * self.pipe.vae_scale_factor) for side in self.shape[1:]]
        return torch.tensor([*size, 0, 0, *size], device=self.pipe.device)

    @cached_property
    def nothing(self) -> Float[Tensor, "1 features"]:
        """What guidance steers away from: the empty prompt, or zeros if the pipeline says so."""
        empty = self([""])
        if self.pipe.config.get("force_zeros_for_empty_prompt"):
            empty[:, :-6] = 0
        return empty
