"""SDXL as a Denoiser; the twin is diffusers, on a small pipeline with random weights."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_sdxl import random_pipeline

from composcope.diffusion.guidance import Guided
from composcope.diffusion.sample import walk
from composcope.errors import InputError
from composcope.features import sdxl
from composcope.features.capture import capture, first_input
from composcope.features.text import in_third
from composcope.features.words import Words, dominant, prompt_words, thirds, without
from composcope.locality import influence, pixel_gradient

PROMPT = "a horse in the middle, a dog on the left"


@pytest.fixture(scope="module")
def model() -> sdxl.SDXL:
    return sdxl.SDXL(random_pipeline())


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sdxl")
    model.pipe.save_pretrained(path)
    return path


def times(model):
    return lambda sigma: model.denoiser.convention(sigma).t


@pytest.mark.parametrize("prediction", ["epsilon", "v_prediction"])
def test_one_step_is_the_schedulers(prediction):
    model = sdxl.SDXL(random_pipeline(prediction))
    scheduler, sigmas = model.scheduler, model.levels(7)
    cond = model.encode([PROMPT])
    text, pooled = cond[:, : 77 * 32].unflatten(1, (77, 32)), cond[:, 77 * 32 : -6]
    x = model.start([3], 7)
    for step in (0, 3, 6):
        t = scheduler.timesteps[step]
        scheduler._step_index = None
        scaled = scheduler.scale_model_input(x, t)
        added = {"text_embeds": pooled, "time_ids": cond[:, -6:]}
        with torch.no_grad():
            want = scheduler.step(model.unet(scaled, t, text, added_cond_kwargs=added).sample, t, x)
            x0 = model(x, sigmas[step : step + 1], cond)
        assert times(model)(sigmas[step : step + 1]).item() == t.item()
        torch.testing.assert_close(x0, want.pred_original_sample, rtol=1e-5, atol=1e-5)
        stepped = x + (sigmas[step + 1] - sigmas[step]) * (x - x0) / sigmas[step]
        torch.testing.assert_close(stepped, want.prev_sample, rtol=1e-5, atol=1e-5)


def test_steps_between_those_of_training_are_the_schedulers(model):
    table = (1 / model.scheduler.alphas_cumprod - 1).sqrt().numpy()
    for sigma in (0.05, 0.31, 2.5, 13.9):
        want = model.scheduler._sigma_to_t(np.float64(sigma), np.log(table))
        assert times(model)(torch.tensor([sigma])).item() == pytest.approx(float(want), abs=1e-2)


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_the_whole_way_is_the_pipelines(model, scale):
    steps, x = 4, model.start([11], 4)
    latents = x / float(model.scheduler.init_noise_sigma)
    pipe = model.pipe
    how = {"num_inference_steps": steps, "guidance_scale": scale, "output_type": "latent"}
    want = pipe(PROMPT, latents=latents, **how).images
    sigmas = model.levels(steps)
    *_, last = walk(
        Guided(model, scale), x / sigmas[0], model.encode([PROMPT]), sigmas, solver="euler"
    )
    got = last.x
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    image = pipe(
        PROMPT, latents=latents, num_inference_steps=steps, guidance_scale=scale, output_type="np"
    ).images
    np.testing.assert_allclose(model.decode(got), image * 255, atol=1)


def test_blocks_are_in_the_order_of_the_way_through(model):
    seen = []
    blocks = model.transformer_blocks
    with capture(model.unet, blocks, lambda name, _: seen.append(name)):
        model(model.start([0], 4), torch.tensor([5.0]), model.encode([PROMPT]))
    assert seen == list(blocks)
    assert [sdxl.part_of(name) for name in blocks] == ["down"] * 2 + ["mid"] * 2 + ["up"] * 4


def test_attention_maps_are_those_of_diffusers(model):
    """Against diffusers' own softmax(q k^T / sqrt(d)) on what the layer was given."""
    name, maps = f"{model.transformer_blocks[2]}.attn2", {}
    cond, attn = model.encode([PROMPT]), model.unet.get_submodule(name)
    given = (model.start([0], 4), torch.tensor([5.0]), cond)
    before = model(*given)
    for token in (0, 2, 7):

        def keep(_, activation, token=token):
            maps[token] = activation

        with capture(model.unet, [name], keep, sdxl.attention_to(token)):
            assert torch.equal(model(*given), before)
    with capture(model.unet, [name], maps.__setitem__, first_input):
        model(*given)
    q = attn.head_to_batch_dim(attn.to_q(maps.pop(name)))
    k = attn.head_to_batch_dim(attn.to_k(cond[:, : 77 * 32].unflatten(1, (77, 32))))
    want = attn.get_attention_scores(q, k).mean(0)
    for token, found in maps.items():
        torch.testing.assert_close(found[0, :, 0], want[:, token], rtol=1e-5, atol=1e-6)


def test_token_is_the_last_of_its_word(model):
    ids = model.pipe.tokenizer("A woodblock print in the style of Hokusai.").input_ids
    at = model.token("A woodblock print in the style of Hokusai.", "Hokusai")
    assert model.pipe.tokenizer.convert_ids_to_tokens(ids[at]) == "i</w>"
    assert model.token("", "anything") == 1
    with pytest.raises(InputError, match="'cow' is not in"):
        model.token("a cat", "cow")


def test_words_are_whole_and_stop_words_stay():
    found = prompt_words("A cat's oil-painting, in the style of Van Gogh.")
    assert [word.text for word in found] == ["cat's", "oil-painting", "style", "Van", "Gogh"]
    assert (
        without("a dog, a red cat on the left.", prompt_words("a dog, a red cat on the left.")[2:])
        == "a dog, a red on the."
    )
    twice = "a red cube and a red ball"
    assert without(twice, [prompt_words(twice)[2]]) == "a red cube and a ball"
    assert without(twice, prompt_words(twice)) == "a and a"


def test_left_out_is_the_prompt_without_each_word(model):
    said = Words(PROMPT, model.encode)
    assert [word.text for word in said.all] == ["horse", "middle", "dog", "left"]
    rows = said.left_out(said.all)
    want = [PROMPT, "a in the middle, a dog on the left", "a horse in the, a dog on the left"]
    want += ["a horse in the middle, a on the left", "a horse in the middle, a dog on the"]
    torch.testing.assert_close(
        rows, torch.cat([model.encode([text]) for text in want]), rtol=1e-4, atol=1e-5
    )
    assert said.features == rows.shape[1] == 77 * 32 + 16 + 6


def test_thirds_are_those_of_the_clause():
    prompt = "a photograph with a red cube on the left, and a ball on the right"
    found = {word.text: third for word, third in thirds(prompt).items()}
    assert found == {"red": 0, "cube": 0, "left": 0, "ball": 2, "right": 2}
    assert thirds("a cat left of a dog") == {}  # the cat may be anywhere but at the right edge
    there = thirds("a cat on the right of the picture")
    assert {word.text: third for word, third in there.items()} == {
        "cat": 2,
        "right": 2,
        "picture": 2,
    }


def test_share_in_a_third():
    energy = np.zeros((1, 2, 4))
    energy[0, :, 1] = (
        3.0  # column 1 of 4 spans 1/4 .. 1/2: a third of it left, two thirds in the middle
    )
    assert in_third(energy, 0) == pytest.approx(1 / 3) and in_third(energy, 1) == pytest.approx(
        2 / 3
    )
    assert in_third(np.ones((1, 5, 16)), 2) == pytest.approx(1 / 3)


def test_dominance():
    assert dominant(torch.tensor([1.0, 5.0, 2.0, 1.5])) == [1]
    assert dominant(torch.tensor([4.0, 5.0, 1.0, 1.5])) == [1, 0]
    assert dominant(torch.tensor([4.0, 5.0, 3.0])) == [] == dominant(torch.zeros(3))


def test_locality_measures_take_it(model):
    """Equations 9 and 10 on latents; the influence of one word is the difference of two denoised
    latents."""
    x, said = model.start([0, 1], 4), Words(PROMPT, model.encode)
    found = influence(model, x, 2.0, said, said.all)
    whole, less = (
        model.encode([text] * 2) for text in (PROMPT, "a horse in the middle, a on the left")
    )
    with torch.no_grad():
        sigma = torch.full((2,), 2.0)
        want = (model(x, sigma, whole) - model(x, sigma, less)).norm(dim=1).mean(0)
    torch.testing.assert_close(found[2], want, rtol=1e-3, atol=1e-5)
    gradient = pixel_gradient(model, x[:1], 2.0, whole[:1], [(3, 4)])
    at = x[:1].clone().requires_grad_()
    x0 = model(at, torch.tensor([2.0]), whole[:1])
    parts = [
        torch.autograd.grad(x0[0, c, 3, 4], at, retain_graph=True)[0][0, c].abs() for c in range(4)
    ]
    torch.testing.assert_close(gradient[0], sum(parts), rtol=1e-4, atol=1e-6)


def test_a_pipeline_comes_back_from_its_folder(model, folder):
    again = sdxl.load(str(folder))
    given = (model.start([5], 4), torch.tensor([3.0]), model.encode([PROMPT]))
    torch.testing.assert_close(again(*given), model(*given))
    half = sdxl.load(str(folder), dtype=torch.bfloat16)
    assert half(*given).dtype == torch.float32
    torch.testing.assert_close(half(*given), model(*given), rtol=0.1, atol=0.3)


def test_what_is_missing_is_said_in_one_sentence(tmp_path, monkeypatch, model):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="hf download stabilityai"):
        sdxl.load(str(tmp_path))
    with pytest.raises(InputError, match="more than the encoders read"):
        model.encode(["cat " * 100])
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(InputError, match=r"pip install 'composcope\[sdxl\]'"):
        sdxl.load("anything")
