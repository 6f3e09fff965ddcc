"""A small SDXL of our own: diffusers' classes, SDXL's structure, trained on captions of scenes.

    python -m composcope.experiments.text_control --steps 7000

    loss = (1 + sigma^2 / sigma_data^2) | eps - unet(x / sqrt(sigma^2 + 1), t, text) |^2
    x = x0 + sigma eps,    t uniform

It is written to composcope/models/text_control.
Every analysis of SDXL runs on it, and what a word means is known: "left" is the left third of the
picture. x0 is the 32x32 image with 2x2 pixels folded into channels, in place of an autoencoder. The
weight is EDM's lambda: without it the noise levels at which words matter hardly count, since x0 is
small there beside the noise. Each word of a caption is left out with probability 0.1, so that
prompts without one are nothing new. The same command goes on where it stopped."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import tyro
from torch import Tensor, nn

from composcope.adapters.diffusers import importable
from composcope.diffusion import checkpoint
from composcope.diffusion.pixels import Pixels
from composcope.experiments import command
from composcope.features.prompts import Composite, Concept, Prompts
from composcope.features.words import prompt_words, without
from composcope.files import SHIPPED, write_text
from composcope.progress import track
from composcope.scenes.render import render
from composcope.scenes.rules import Rules, sample
from composcope.scenes.scene import COLORS, SHAPES, Scene
from composcope.tensors import save_tensors

RULES = Rules(
    objects=(1, 2), sizes=("large",), materials=("rubber",), camera_jitter=0.0, lamp_jitter=0.0
)
PLACES = ("on the left", "in the middle", "on the right")  # thirds of the width
SIZE, FOLD, LENGTH = 32, 2, 24  # pixels, pixels a cell, tokens
SIGMA_REL, BATCH, RATE = 0.1, 16, 2e-3
EVERY = 100  # steps between checkpoints
# CLIP's bytes and the merges that our words need: tokens are CLIP's own, their numbers are not.
TOKENIZER = SHIPPED / "text_control" / "tokenizer"


@dataclass(frozen=True)
class Args:
    """nice python -m composcope.experiments.text_control --steps 7000"""

    steps: int = 7000
    """Of 16 captions each, about 0.25 s on one core; the rate falls to zero towards the last."""
    scenes: int = 8000  # Scenes that are drawn once and used again and again.
    work: Path = Path("runs/text_control")  # Checkpoints and the log.
    out: Path = Path("composcope/models/text_control")  # Where the pipeline goes.


def phrases(scene: Scene) -> list[str]:
    thirds = [min(2, max(0, int(3 * u))) for u, _ in scene.places]
    pairs = zip(scene.objects, thirds, strict=True)
    return [f"a {thing.color} {thing.shape} {PLACES[third]}" for thing, third in pairs]


def spoken(said: list[str], chance: np.random.Generator) -> str:
    """A caption: objects in any order, a word left out now and then, and one in ten is empty."""
    prompt = " and ".join(said[i] for i in chance.permutation(len(said)))
    lost = [word for word in prompt_words(prompt) if chance.random() < 0.1]
    return without(prompt, lost) if chance.random() >= 0.1 else ""


def pipeline():
    """SDXL's parts, small: 1.8 M weights on three levels."""
    importable()
    import transformers as clip
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline, UNet2DConditionModel

    tokenizer = clip.CLIPTokenizer.from_pretrained(TOKENIZER, model_max_length=LENGTH)
    text = clip.CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=256,
        projection_dim=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    unet = UNet2DConditionModel(
        sample_size=SIZE // FOLD,
        in_channels=3 * FOLD**2,
        out_channels=3 * FOLD**2,
        layers_per_block=1,
        block_out_channels=(32, 48, 64),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        transformer_layers_per_block=(1, 1, 1),
        attention_head_dim=(2, 3, 4),  # the number of heads, whatever its name says
        norm_num_groups=8,
        cross_attention_dim=128,
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=64 + 6 * 8,
    )
    schedule = EulerDiscreteScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear"
    )
    return StableDiffusionXLPipeline(
        vae=None,
        text_encoder=clip.CLIPTextModel(text),
        text_encoder_2=clip.CLIPTextModelWithProjection(text),
        tokenizer=tokenizer,
        tokenizer_2=tokenizer,
        unet=unet,
        scheduler=schedule,
        force_zeros_for_empty_prompt=False,  # nothing said is "", in training as in sampling
        add_watermarker=False,
    )


def text_loss(
    pipe, x0: Tensor, said: list[str], chance: torch.Generator, sigma_data: float
) -> Tensor:
    how = {"padding": "max_length", "max_length": LENGTH, "truncation": True}
    ids = pipe.tokenizer(said, return_tensors="pt", **how).input_ids
    one = pipe.text_encoder(ids, output_hidden_states=True)
    two = pipe.text_encoder_2(ids, output_hidden_states=True)
    context = torch.cat([one.hidden_states[-2], two.hidden_states[-2]], dim=-1)
    side = float(pipe.default_sample_size * pipe.vae_scale_factor)
    time_ids = torch.tensor([side, side, 0, 0, side, side]).expand(len(x0), -1)
    t = torch.randint(0, 1000, (len(x0),), generator=chance)
    sigma = (1 / pipe.scheduler.alphas_cumprod[t] - 1).sqrt()[:, None, None, None]
    eps = torch.randn(x0.shape, generator=chance)
    scaled = (x0 + sigma * eps) / (sigma**2 + 1).sqrt()
    more = {"text_embeds": two.text_embeds, "time_ids": time_ids}
    error = (pipe.unet(scaled, t, context, added_cond_kwargs=more).sample - eps).square()
    return ((1 + (sigma / sigma_data) ** 2) * error).mean()


def parts(pipe) -> nn.ModuleDict:
    return nn.ModuleDict({"unet": pipe.unet, "one": pipe.text_encoder, "two": pipe.text_encoder_2})


def draw_captions(count: int) -> tuple[list[list[str]], Tensor, Pixels]:
    scenes = [sample(0, index, RULES) for index in range(count)]
    images = torch.from_numpy(render(scenes, SIZE)).permute(0, 3, 1, 2) / 127.5 - 1
    pixels = Pixels.measure(images[:2000], fixed=True)
    x0 = F.pixel_unshuffle(pixels.encode(images), FOLD)
    return [phrases(scene) for scene in scenes], x0, pixels


def rate(step: int, steps: int) -> float:
    """Up over 100 steps, down to zero over the last third."""
    return RATE * min(1.0, step / 100, 3 * (1 - step / (steps + 1)))


def train_unet(pipe, args: Args, said: list[list[str]], x0: Tensor) -> checkpoint.State:
    """A step is a function of its number and the weights before it: what stopped goes on."""
    model = parts(pipe).train()
    state = checkpoint.State(model, "adam", [SIGMA_REL])
    note = args.work / "log.jsonl"
    done = 0
    recent: list[float] = []
    sigma_data = float(x0.std())
    if kept := checkpoint.latest(args.work / "checkpoints"):
        done = kept[0]
        state.restore(*kept)
    for step in track(range(done + 1, args.steps + 1), "text control", args.steps - done):
        chance, dice = torch.Generator().manual_seed(step), np.random.default_rng(step)
        chosen = dice.integers(len(said), size=BATCH)
        value = text_loss(
            pipe, x0[chosen], [spoken(said[i], dice) for i in chosen], chance, sigma_data
        )
        value.backward()
        # SDXL reads the last layer but one: what is beyond it has no gradient
        for weight in model.parameters():
            weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        state.update(rate(step, args.steps))
        state.average(step)
        recent.append(value.item())
        if step % EVERY == 0 or step == args.steps:
            line = json.dumps({"step": step, "loss": sum(recent) / len(recent)})
            write_text(note, (note.read_text() if note.exists() else "") + line + "\n")
            checkpoint.save(args.work / "checkpoints", step, state.tensors())
            recent = []
    return state


def study_prompts() -> Prompts:
    """Prompts for the analyses; single concepts are captions with the rest left out."""
    concepts = []
    for category, names in {"colors": COLORS, "shapes": SHAPES, "places": PLACES}.items():
        for name in names:
            word = name.split()[-1]
            concepts.append(Concept(word, category, f"a {name}", word))
    composites = (
        Composite("red cube left", "a red cube on the left", ("red", "cube", "left")),
        Composite(
            "blue sphere middle", "a blue sphere in the middle", ("blue", "sphere", "middle")
        ),
    )
    locality = "a red cube on the left and a blue sphere on the right"
    places = ((1 / 6, 0.5), (5 / 6, 0.5), (0.5, 0.5), (0.5, 0.1))
    return Prompts(tuple(concepts), composites, locality, places)


def ship_pipeline(pipe, averages: dict[str, Tensor], pixels: Pixels, out: Path) -> None:
    parts(pipe).load_state_dict(averages, strict=False)
    pipe.to(torch.float16).save_pretrained(out)
    save_tensors(out / "pixels.safetensors", pixels.state_dict())
    write_text(out / "prompts.json", json.dumps(asdict(study_prompts()), indent=1) + "\n")


def main(args: tyro.conf.OmitArgPrefixes[Args]) -> None:
    pipe = pipeline()
    said, x0, pixels = draw_captions(args.scenes)
    state = train_unet(pipe, args, said, x0)
    ship_pipeline(pipe, state.averages[SIGMA_REL].average, pixels, args.out)


if __name__ == "__main__":
    command(main)
