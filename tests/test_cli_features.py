"""The whole command: on a small random SDXL, on the trained control, and on a small random colour model."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from small_sdxl import random_pipeline

from composcope.cli import main
from composcope.diffusion.pixels import Pixels
from composcope.errors import InputError
from composcope.features import measure, prompts, sdxl
from composcope.features.profile import NOTHING
from composcope.results import Row, add, read
from composcope.runs import Model, configure

ASKED = {
    "concepts": [
        {"name": "dog", "category": "animals", "prompt": "a dog", "word": "dog"},
        {"name": "cat", "category": "animals", "prompt": "a cat", "word": "cat"},
        {"name": "monet", "category": "styles", "prompt": "in the style of Monet", "word": "Monet"},
    ],
    "composites": [{"name": "monet+cat", "prompt": "a cat in the style of Monet", "parts": ["monet", "cat"]}],
    "locality": "a dog on the left, a cat on the right",
    "places": [[0.2, 0.5], [0.8, 0.5]],
}
FIGURES = {"places", "words", "word_maps", "profile", "profile-attention", "spaces", "hidden", "hidden-layers"}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pipeline")
    random_pipeline().save_pretrained(folder)
    (folder / "prompts.json").write_text(json.dumps(ASKED))
    return folder


def run(folder: Path, *more: str) -> list[Row]:
    out = folder / "features.jsonl"
    sys.argv = ["composcope", "features", "--out", str(out), *more]
    main()
    return read(out)


def test_sdxl_end_to_end_and_again(pipeline, tmp_path, capsys):
    """Rows against the definition; a second call makes only what is missing and gives the same rows."""
    small = ("--sdxl", str(pipeline), "--seeds", "2", "--steps", "3", "--locality-steps", "3", "--grid", "2")
    rows = run(tmp_path, *small)
    assert "10 of 10 to make, about" in capsys.readouterr().err
    folder = next((tmp_path / "features").iterdir())
    assert {path.stem for path in folder.glob("*.png")} >= FIGURES
    claims = {row.claim.removeprefix("features/") for row in rows}
    assert claims >= {"within", "between", "ratio", "gap", "composite", "square", "influence", "two_places", "dominant"}

    block = sdxl.load(str(pipeline)).transformer_blocks[0]
    mean = {
        name: torch.stack([measure.read(measure.file_of(folder / "features", name, s), f"{block}@mid") for s in (0, 1)])
        for name in ("dog", "cat", NOTHING)
    }
    d, e = (mean[name].double().mean(0).flatten() - mean[NOTHING].double().mean(0).flatten() for name in ("dog", "cat"))
    own = next(
        r for r in rows if r.claim == "features/within" and r.setting.get("index") == 0 and r.setting["level"] == "mid"
    )
    assert own.value == pytest.approx(float(torch.nn.functional.cosine_similarity(d, e, dim=0)), abs=1e-6)

    lost = measure.file_of(folder / "features", "cat", 1)
    lost.unlink()
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*.safetensors")}
    again = run(tmp_path, *small)
    assert "1 of 10 to make" in capsys.readouterr().err and lost.exists()
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    for before, after in zip(rows, again, strict=True):
        assert before.key == after.key
        assert before.value == after.value or before.value == pytest.approx(after.value, rel=1e-3, abs=1e-4)


def test_means_are_those_of_the_pipelines_own_run(pipeline, tmp_path):
    """The twin: hidden states that diffusers' pipeline has at its first step, for the conditional half of its batch."""
    run(tmp_path, "--sdxl", str(pipeline), "--seeds", "2", "--steps", "3", "--locality-steps", "3", "--grid", "8")
    model = sdxl.load(str(pipeline))
    block, seen = model.transformer_blocks[0], []
    hook = model.unet.get_submodule(block).register_forward_hook(lambda m, a, out: seen.append(out))
    latents = model.start([1], 3) / float(model.scheduler.init_noise_sigma)
    model.pipe("a dog", latents=latents, num_inference_steps=3, guidance_scale=5.0, output_type="latent")
    hook.remove()
    folder = next((tmp_path / "features").iterdir()) / "features"
    for level, step in {"high": 0, "mid": 1, "low": 2}.items():
        found = measure.read(measure.file_of(folder, "dog", 1), f"{block}@{level}")
        torch.testing.assert_close(found.flatten(1), seen[step][1].T, rtol=1e-3, atol=1e-3)


def test_bad_input_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for given, said in (
        ([], "give either a RUN, or --sdxl MODEL"),
        (["--sdxl", str(tmp_path)], "hf download"),
        (["--sdxl", "text_control", "--seeds", "1"], "--seeds is at least 2"),
        (["--sdxl", "text_control", "--prompts", str(tmp_path / "none.json")], "not a file of prompts"),
        (["nowhere"], "there is no run 'nowhere'"),
    ):
        with pytest.raises(SystemExit) as stopped:
            run(tmp_path, *given)
        err = capsys.readouterr().err
        assert stopped.value.code == 2 and said in err and "Traceback" not in err


def test_prompts_are_checked(tmp_path):
    for change, said in (
        ({"concepts": ASKED["concepts"][:1], "composites": []}, "at least two"),
        ({"places": [[0.5, 0.5]]}, "two places"),
        ({"composites": [{"name": "x", "prompt": "y", "parts": ["cow"]}]}, "'cow', which is not a concept"),
    ):
        path = tmp_path / "prompts.json"
        path.write_text(json.dumps(ASKED | change))
        with pytest.raises(InputError, match=said):
            prompts.read(path)
    assert len(prompts.SDXL_PROMPTS.concepts) == 24 and {c.category for c in prompts.SDXL_PROMPTS.concepts} == {
        "animals",
        "art styles",
        "foods",
        "places",
    }


def color_model(folder: Path) -> tuple[Model, Path]:
    """A run folder with weights that nobody trained; gains of 1 let the condition through."""
    model = Model(configure("color", "smoke"), Pixels(torch.zeros(3, 16, 16), 1.0))
    for name, weight in model.named_parameters():
        if name.endswith("gain"):
            torch.nn.init.ones_(weight)
    model.config.save(folder / "config.json")
    save_file(dict(model.state_dict()), folder / "model.safetensors")
    return model, folder


def test_a_colour_model(tmp_path, monkeypatch):
    """A small random model: layers from input to output, means over the pixels of its samples, K_max beside them."""
    model, folder = color_model(tmp_path / "tiny")
    add(tmp_path / "evaluate.jsonl", [Row("length/k_max_paper", folder.name, 4, {"snapshot": "final"}, None, 3, 5)])
    monkeypatch.setattr("composcope.cli.features.GROUPS", 2)
    rows = run(tmp_path, str(folder), "--num", "2")
    assert next(r for r in rows if r.claim == "features/k_max").value == 4
    own = [row for row in rows if row.claim == "features/between" and "index" in row.setting]
    layers = measure.modulated_layers(model)
    assert len(own) == 3 * len(layers) and {row.setting["part"] for row in own} == {"encoder", "decoder"}
    pictures = {path.name for path in (tmp_path / "features").rglob("*.png")}
    assert pictures == {"profile.png", "matrices-high.png", "matrices-mid.png", "matrices-low.png"}
    kept = next((tmp_path / "features").iterdir())
    x = measure.read(measure.file_of(kept, "red", 1), "pixel")
    assert x.shape == model.shape and bool(np.isfinite(x.numpy()).all())
