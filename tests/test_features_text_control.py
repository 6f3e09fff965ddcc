"""The text-conditioned control: captions say where things are, and training goes on, ships and
loads."""

import json

import numpy as np
import pytest
import torch

from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import noise_levels, sample
from composcope.evaluation.detect import detect
from composcope.experiments import text_control
from composcope.experiments.text_control import (
    PLACES,
    Args,
    phrases,
    pipeline,
    ship_pipeline,
    spoken,
    train_unet,
)
from composcope.features import prompts, sdxl
from composcope.scenes import COLORS, SHAPES, Object, Scene


def test_a_caption_says_where_things_are():
    """On the ground line across the picture: far left, centre and far right of the camera's
    view."""
    across = [Object("cube", "large", "rubber", color, x, y) for color, x, y in
              (("red", -2.0, -2.3), ("blue", 0.0, 0.0), ("gray", 2.0, 2.3))]  # fmt: skip
    scene = Scene(tuple(across))
    us = [u for u, _ in scene.places]
    assert us == sorted(us) and us[0] < 1 / 3 < us[1] < 2 / 3 < us[2]
    want = ["a red cube on the left", "a blue cube in the middle", "a gray cube on the right"]
    assert phrases(scene) == want
    said = [spoken(want, np.random.default_rng(seed)) for seed in range(300)]
    assert 15 <= said.count("") <= 50  # one in ten
    assert any(set(text.split(" and ")) == set(want) for text in said)


def test_its_words_are_tokens_as_in_clip():
    """CLIP knows all of them but cyan."""
    tokenizer = pipeline().tokenizer
    text = " ".join([*COLORS, *SHAPES, *PLACES, "a and"]).replace("cyan ", "")
    assert tokenizer.tokenize(text) == [f"{word}</w>" for word in text.split()]
    assert tokenizer.tokenize("cyan") == ["cy", "an</w>"]


def test_training_goes_on_ships_and_loads(tmp_path, monkeypatch):
    """Two steps, then two more, end where four at once end: exactly the same weights."""
    monkeypatch.setattr(text_control, "BATCH", 2)
    said, x0 = (
        [["a red cube on the left"], ["a blue sphere in the middle"]],
        torch.randn(2, 12, 16, 16),
    )
    monkeypatch.setattr(text_control, "rate", lambda step, steps: 1e-3)
    train_unet(pipeline(), Args(steps=2, work=tmp_path / "halves"), said, x0)
    state = train_unet(pipeline(), Args(steps=4, work=tmp_path / "halves"), said, x0)
    once = train_unet(pipeline(), Args(steps=4, work=tmp_path / "whole"), said, x0)
    for name, weight in state.weights.items():
        assert torch.equal(weight, once.weights[name]), name
    assert [
        json.loads(line)["step"]
        for line in (tmp_path / "halves" / "log.jsonl").read_text().splitlines()
    ] == [2, 4]
    out = tmp_path / "out"
    average = state.averages[text_control.SIGMA_REL].average
    ship_pipeline(pipeline(), average, Pixels(torch.zeros(3, 32, 32), 0.2), out)
    model = sdxl.load(str(out))
    parts = model.unet, model.pipe.text_encoder, model.pipe.text_encoder_2
    assert sum(w.numel() for part in parts for w in part.parameters()) < 3e6
    assert sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) < 6e6
    x, cond = model.start([0], 3), model.encode(["a red cube on the left"])
    assert model.decode(model(x, torch.ones(1), cond)).shape == (1, 32, 32, 3)
    concepts = prompts.read_prompts(out / "prompts.json").concepts
    assert {concept.category for concept in concepts} == {"colors", "shapes", "places"}


@pytest.mark.skipif(
    not (sdxl.SHIPPED / "text_control" / "unet").is_dir(), reason="the control is not trained yet"
)
def test_the_shipped_control_has_learned_where_left_is():
    """Asked for one object in a third of the picture, it draws one there in most images; chance is
    about a third."""
    model = sdxl.load("text_control")
    for third, place in enumerate(PLACES):
        cond = model.encode([f"a red cube {place}"]).expand(8, -1)
        images = model.decode(
            sample(model, range(8), model.shape, cond, noise_levels(8, 0.03, 14.0))
        )
        there = [any(int(3 * found.x) == third for found in objects) for objects in detect(images)]
        assert np.mean(there) > 0.5, place
