"""The whole command: on a small random SDXL, and on small random models of our own."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_sdxl import random_pipeline
from untrained import untrained

from composcope.cli import main
from composcope.errors import InputError
from composcope.features import features, prompts, sdxl
from composcope.features.means import MeansFolder, modulated_layers
from composcope.features.profile import NOTHING
from composcope.locality.measure import pixel_of
from composcope.results import Row, read_rows, where
from composcope.results.arrays import read_arrays
from composcope.runs import load
from composcope.scenes.condition import Vocabulary

ASKED = {
    "concepts": [
        {"name": "dog", "category": "animals", "prompt": "a dog", "word": "dog"},
        {"name": "cat", "category": "animals", "prompt": "a cat", "word": "cat"},
        {"name": "monet", "category": "styles", "prompt": "in the style of Monet", "word": "Monet"},
    ],
    "composites": [
        {"name": "monet+cat", "prompt": "a cat in the style of Monet", "parts": ["monet", "cat"]}
    ],
    "locality": "a dog on the left, a cat on the right",
    "places": [[0.2, 0.5], [0.8, 0.5]],
}
FIGURES = {"places", "words", "spaces"} | {
    name.format(maps)
    for name in ("profile-{}", "{}", "{}-layers")
    for maps in ("hidden", "attention")
}
SMALL = ("--seeds", "2", "--steps", "3", "--locality-steps", "3", "--grid", "8")


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
    return read_rows(out)


def check_twin(pipeline: Path, means: MeansFolder) -> None:
    """Means are the hidden states of diffusers' pipeline, in the conditional half of its batch."""
    model = sdxl.load(str(pipeline))
    block = model.transformer_blocks[0]
    seen = []
    hook = model.unet.get_submodule(block).register_forward_hook(lambda m, a, out: seen.append(out))
    latents = model.start([1], 3) / float(model.scheduler.init_noise_sigma)
    model.pipe(
        "a dog", latents=latents, num_inference_steps=3, guidance_scale=5.0, output_type="latent"
    )
    hook.remove()
    for level, step in {"high": 0, "mid": 1, "low": 2}.items():
        found = means.read("dog", 1, f"{block}@{level}")
        torch.testing.assert_close(found.flatten(1), seen[step][1].T, rtol=1e-3, atol=1e-3)


def test_sdxl_end_to_end_and_again(pipeline, tmp_path, capsys):
    """Rows against the definition; a second call makes only what is missing, with the same rows."""
    rows = run(tmp_path, "--sdxl", str(pipeline), *SMALL)
    printed = capsys.readouterr()
    assert "10 of 10 to make, about" in printed.err
    assert "feature space hidden" in printed.out and "overlap of conditions" in printed.out
    assert "in the third that its clause names" in printed.out and "next:" in printed.out
    folder = next((tmp_path / "features").iterdir())
    assert {path.stem for path in folder.glob("*.png")} == FIGURES
    found = {row.what.removeprefix("features/") for row in rows}
    assert found >= {"within", "between", "ratio", "gap", "feature_space", "composite"}
    assert found >= {"two_places", "dominant", "share_in_third"}
    assert found >= {"locality/square", "locality/influence", "locality/overlap"}
    assert {row.run for row in rows} == {pipeline.name}

    block = sdxl.load(str(pipeline)).transformer_blocks[0]
    means = MeansFolder(folder / "features", {})
    mean = {
        name: torch.stack([means.read(name, s, f"{block}@mid") for s in (0, 1)]).double().mean(0)
        for name in ("dog", "cat", NOTHING)
    }
    d = (mean["dog"] - mean[NOTHING]).flatten()
    e = (mean["cat"] - mean[NOTHING]).flatten()
    (own,) = where(rows, what="features/within", index=0, level="mid", maps="hidden")
    cosine = float(torch.nn.functional.cosine_similarity(d, e, dim=0))
    assert own.value == pytest.approx(cosine, abs=1e-6)
    # The two blocks of this pipeline's mid part are all of its feature space.
    for maps in ("hidden", "attention"):
        at = {"level": "high", "maps": maps}
        (space,) = where(rows, what="features/feature_space", **at)
        (mid,) = where(rows, what="features/between", layer="mid", **at)
        assert (space.value, space.low, space.high) == (mid.value, mid.low, mid.high)

    check_twin(pipeline, means)

    lost = means.path("cat", 1)
    lost.unlink()
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*.safetensors")}
    again = run(tmp_path, "--sdxl", str(pipeline), *SMALL)
    assert "1 of 10 to make" in capsys.readouterr().err and lost.exists()
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    for before, after in zip(rows, again, strict=True):
        assert before.key == after.key
        same = before.value == after.value
        assert same or before.value == pytest.approx(after.value, rel=1e-3, abs=1e-4)


def test_one_prompt_one_image(pipeline, tmp_path, capsys):
    """Influences of the words, against two calls of the denoiser; a figure and a table."""
    prompt = "a cat left of a dog"
    rows = run(tmp_path, "--sdxl", str(pipeline), "--prompt", prompt, "--locality-steps", "3")
    printed = capsys.readouterr().out
    assert "overlap of conditions" in printed and "no places" in printed
    influence = where(rows, what="locality/influence")
    assert {row.condition for row in influence} == {"cat", "left", "dog"}
    assert {row.n for row in influence} == {1}
    assert not where(rows, what="features/between")

    model = sdxl.load(str(pipeline))
    sigma = model.levels(3)[:1]
    x = model.start([0], 3)
    whole, less = (model(x, sigma, model.encode([text])) for text in (prompt, "a left of a dog"))
    pixel = pixel_of((0.2, 0.5), model.shape[1:])
    (own,) = where(
        influence, condition="cat", sigma=max(row.sigma for row in influence), pixel=pixel
    )
    expected = (whole - less)[0, :, pixel[0], pixel[1]].norm()
    assert own.value == pytest.approx(float(expected), rel=1e-3)
    folder = next((tmp_path / "features").iterdir())
    assert {path.name for path in folder.glob("*.png")} == {"places.png", "words.png"}


def test_bad_input_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"concepts": 3}')
    for given, said in (
        ([], "give either a RUN, or --sdxl MODEL"),
        (
            ["color", "--prompt", "a cat"],
            "--prompt is asked of a text-to-image model: give --sdxl MODEL",
        ),
        (["--sdxl", str(tmp_path)], "hf download"),
        (["--sdxl", "text_control", "--seeds", "1"], "--seeds is at least 2"),
        (["--sdxl", "text_control", "--prompts", str(tmp_path / "none.json")], "none.json"),
        (["--sdxl", "text_control", "--prompts", str(wrong)], "$.concepts"),
        (["nowhere"], "there is no run 'nowhere'"),
    ):
        with pytest.raises(SystemExit) as stopped:
            run(tmp_path, *given)
        err = capsys.readouterr().err
        assert stopped.value.code == 2 and said in err and "Traceback" not in err


def test_prompts_are_checked(tmp_path):
    cow = {"name": "x", "prompt": "y", "parts": ["cow"]}
    for change, said in (
        ({"concepts": ASKED["concepts"][:1], "composites": []}, "at least two"),
        ({"places": [[0.5, 0.5]]}, "two places"),
        ({"composites": [cow]}, "'cow', which is not a concept"),
    ):
        path = tmp_path / "prompts.json"
        path.write_text(json.dumps(ASKED | change))
        with pytest.raises(InputError, match=said):
            prompts.read_prompts(path)
    categories = {concept.category for concept in prompts.SDXL_PROMPTS.concepts}
    assert len(prompts.SDXL_PROMPTS.concepts) == 24
    assert categories == {"animals", "art styles", "foods", "places"}


def test_a_colour_model(tmp_path, capsys):
    """A small random model: layers from input to output, pixels of its samples, feature space."""
    folder = untrained(tmp_path / "tiny", "color")
    rows = run(tmp_path, str(folder), "--num", "2")
    model = load(folder)
    layers = modulated_layers(model)
    own = [row for row in where(rows, what="features/between") if row.index is not None]
    assert len(own) == 3 * len(layers) and {row.part for row in own} == {"encoder", "decoder"}
    assert {row.weights for row in rows} == {model.fingerprint}
    # Two sizes of maps are all that this encoder has: its feature space is the whole encoder.
    for level in ("high", "mid", "low"):
        (space,) = where(rows, what="features/feature_space", level=level)
        (encoder,) = where(rows, what="features/between", layer="encoder", level=level)
        assert (space.value, space.low) == (encoder.value, encoder.low)
    assert "feature space" in capsys.readouterr().out
    kept = next((tmp_path / "features").iterdir())
    # Fmt: skip.
    names = {"profile.png", "matrices-high.png", "matrices-mid.png", "matrices-low.png"}
    assert {path.name for path in kept.glob("*.png")} == names
    x = MeansFolder(kept, {}).read("red", 1, "pixel")
    assert x.shape == model.shape and bool(np.isfinite(x.numpy()).all())
    matrices = read_arrays(kept / "matrices.npz")
    assert list(matrices["concepts"]) == sorted(model.conditioner.names)
    (pixel,) = where(rows, what="features/between", layer="pixel")
    above = np.triu_indices(8, 1)
    assert pixel.value == pytest.approx(float(matrices["pixel"][above].mean()), abs=1e-6)


def test_features_that_cannot_be_measured_are_named(tmp_path):
    color = load(untrained(tmp_path / "color", "color"))
    single = load(tmp_path / "color")
    single.conditioner = Vocabulary(("cat",))
    for model, given, words in (
        (single, {}, "knows a single word; two at least are compared"),
        (load(untrained(tmp_path / "exp2l", "exp2l")), {"num": 2, "groups": 2}, "on patches"),
        (load(untrained(tmp_path / "images", "images")), {}, "no concepts to compare"),
        (color, {"num": 1}, "1 samples in 10 groups"),
    ):
        with pytest.raises(InputError, match=words):
            features(model, **given)


def test_means_of_something_else_are_not_taken(tmp_path):
    todo = {("red", 0): lambda: {"layer@high": torch.ones(2, 3)}}
    MeansFolder(tmp_path, {"num": 2}).make(todo, "means", lambda: None, 1)
    assert torch.equal(MeansFolder(tmp_path, {}).read("red", 0, "layer@high"), torch.ones(2, 3))
    with pytest.raises(InputError, match="was made with num = 2, not 4"):
        MeansFolder(tmp_path, {"num": 4}).make(todo, "means", lambda: None, 1)
    with pytest.raises(InputError, match="does not hold layer@low"):
        MeansFolder(tmp_path, {"num": 2}).read("red", 0, "layer@low")
    MeansFolder(tmp_path, {}).path("red", 0).write_bytes(b"spoiled")
    with pytest.raises(InputError, match="does not hold means"):
        MeansFolder(tmp_path, {"num": 2}).make(todo, "means", lambda: None, 1)
