"""Own images from end to end: trained on, loaded, drawn with and audited, by words or by places."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from same_process import typed

from composcope.diffusion.pixels import Pixels
from composcope.diffusion.sample import draw, noise_levels, sample
from composcope.errors import InputError
from composcope.evaluation import evaluate
from composcope.locality import LocalConditions, Strongest, audit
from composcope.runs import configure, load
from composcope.runs.config import Config
from composcope.runs.data import (
    Stored,
    complete_config,
    images_of,
    picture_readers,
    pixel_constants,
    shown_images,
)
from composcope.runs.training import start
from composcope.scenes import Rules
from composcope.scenes.clevr import load_clevr
from composcope.scenes.condition import Vocabulary
from composcope.scenes.export import Job, export

SMALL = {"images": 64, "batch": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve pictures, half of them red on the left, half of them blue on the right."""
    path = tmp_path_factory.mktemp("own")
    lines = []
    for i in range(12):
        red = i % 2 == 0
        picture = np.full((16, 16, 3), 128, np.uint8)
        picture[4:12, slice(1, 7) if red else slice(9, 15)] = (250, 0, i) if red else (0, i, 250)
        Image.fromarray(picture).save(path / f"{i}.png")
        tags = ["red", "left"] if red else ["blue", "right"]
        place = [0.25 if red else 0.75, 0.5]
        lines.append(json.dumps({"file_name": f"{i}.png", "tags": tags, "places": [place]}))
    (path / "metadata.jsonl").write_text("\n".join(lines))
    return path


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr("composcope.runs.data.MEASURED", 256)


def test_the_first_images_are_measured_under_a_bar(capsys):
    """Many objects take long to place. However many are made at once, they are the same."""
    config = configure("exp1", "smoke")
    images = images_of(config)
    pixels, sigma_data = pixel_constants(config, images)
    assert "measuring the first images" in capsys.readouterr().err
    first, _ = images(0, 256)
    twin = Pixels.measure(first, fixed=not config.jitter)
    assert torch.equal(pixels.centre, twin.centre) and pixels.scale == twin.scale
    assert sigma_data == float(pixels.encode(first).std())


def test_words_are_trained_on_drawn_with_audited_and_repaired(folder, tmp_path, capsys):
    asked = {"conditioner": "vocabulary", "data": str(folder), "field": "tags", **SMALL}
    start(configure("exp1", "smoke", asked), tmp_path / "run")
    kept = Config.load(tmp_path / "run" / "config.json")
    assert kept.words == ("blue", "left", "red", "right")
    start(configure("exp1", "smoke", asked), tmp_path / "run")  # the same run, which is finished

    model = load(tmp_path / "run")
    assert model.conditioner == Vocabulary(("blue", "left", "red", "right"))
    sets = [("red", "left"), ("blue",)]
    x = sample(model, [0, 1], model.shape, model.conditioner(sets), noise_levels(4))
    assert model.decode(x).shape == (2, 16, 16, 3)

    images = model.pixels.encode(images_of(kept)(0, 2)[0])
    report = audit(model, images, sets, model.conditioner, sigmas=[1.0])
    table = report.table()
    assert "1.000" in table
    with pytest.raises(InputError, match="a word of this model cannot be counted"):
        evaluate(model)
    repaired = LocalConditions(model, neighbourhoods=Strongest())
    assert draw(repaired, sets, steps=2).shape == (2, 16, 16, 3)

    out = tmp_path / "rows.jsonl"
    typed(f"composcope locality {tmp_path / 'run'} --noise-levels 1 --num 1 --out {out}")
    said = capsys.readouterr().out
    assert "next: composcope report" in said and "evaluate" not in said


def test_places_and_shards_are_trained_on(folder, tmp_path):
    asked = {"data": str(folder), "field": "places", "images": 16, "batch": 8}
    start(configure("exp1", "smoke", asked), tmp_path / "places")
    assert load(tmp_path / "places").conditioner.has_places
    export(Job(6, (24, 18), "webdataset", Rules((1, 3))), tmp_path / "shards")
    asked = {"data": str(tmp_path / "shards"), "images": 16, "batch": 8}
    start(configure("exp2", "smoke", asked), tmp_path / "run")
    assert load(tmp_path / "run").config.data == str(tmp_path / "shards")


def test_pictures_of_any_layout_do_where_nothing_is_asked(folder, tmp_path):
    export(Job(6, (24, 18), "parquet", Rules((1, 3))), tmp_path / "shards")
    for path, count in ((folder, 12), (tmp_path / "shards", 6)):
        images = Stored(path, 16, 0, "full").images
        assert images.shape == (count, 3, 16, 16) and images.dtype == torch.uint8


def test_pictures_with_metadata_are_in_the_order_of_their_names(tmp_path):
    for name, level in (("a", 10), ("b", 20), ("c", 30)):
        Image.new("RGB", (4, 4), (level,) * 3).save(tmp_path / f"{name}.png")
    lines = [f'{{"file_name": "{name}.png", "words": ["dog"]}}\n' for name in "cab"]
    (tmp_path / "metadata.jsonl").write_text("".join(lines))
    assert [int(read().mean()) for read in picture_readers(tmp_path)] == [10, 20, 30]


def test_images_of_one_colour_are_refused_before_anything_is_written(tmp_path):
    (tmp_path / "solid").mkdir()
    Image.new("RGB", (16, 16), "red").save(tmp_path / "solid/a.png")
    config = configure("images", "smoke", {"data": str(tmp_path / "solid")})
    with pytest.raises(InputError, match="solid are all of one colour"):
        start(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_how_many_pictures_the_view_leaves_out_is_said(tmp_path, capsys):
    Image.new("RGB", (40, 20)).save(tmp_path / "a.png")
    Image.new("RGB", (40, 20)).save(tmp_path / "b.png")
    lines = [
        '{"file_name": "a.png", "at": [[0.05, 0.5]]}',
        '{"file_name": "b.png", "at": [[0.5, 0.5]]}',
    ]
    (tmp_path / "metadata.jsonl").write_text("\n".join(lines))
    for view, told in (
        ("square", "1 of 2 pictures have a place beyond the square view"),
        ("full", ""),
    ):
        config = configure("exp1", "smoke", {"data": str(tmp_path), "view": view})
        images_of(config)(0, 1)
        assert told in capsys.readouterr().err


def test_notes_of_the_system_beside_pictures_are_passed_over(tmp_path):
    Image.new("RGB", (4, 4), "red").save(tmp_path / "a.png")
    (tmp_path / "._a.png").write_bytes(b"no picture")
    assert Stored(tmp_path, 4, 0, "full").images.shape == (1, 3, 4, 4)


def test_pictures_without_labels_are_seen_as_those_with_labels_are(tmp_path):
    picture = np.zeros((4, 8, 3), np.uint8)
    picture[:, 2:6] = 255  # the square in its middle
    Image.fromarray(picture).save(tmp_path / "a.png")
    assert Stored(tmp_path, 4, 0, "square").images.min() == 255
    assert Stored(tmp_path, 4, 0, "full").images.min() == 0
    config = configure("images", "smoke", {"data": str(tmp_path), "view": "square"})
    assert shown_images(config, 1, None, 0).min() == 1
    assert shown_images(config, 1, tmp_path, 0).min() == 1


def test_images_on_disk_say_how_many_objects_a_run_was_trained_on(tmp_path):
    """K_max counts from there; what the command line says must not differ."""
    export(Job(6, (16, 16), "clevr", Rules(objects=(2, 5))), tmp_path / "scenes")
    named = tmp_path / "named"
    named.mkdir()
    for name in "ab":
        Image.new("RGB", (8, 8)).save(named / f"{name}.png")
    words = '{"file_name": "a.png", "words": []}\n{"file_name": "b.png", "words": ["x", "y"]}\n'
    (named / "metadata.jsonl").write_text(words)

    scenes = configure("color", "smoke", {"data": str(tmp_path / "scenes")})
    numbers = [
        len(scene.objects) for scene in load_clevr(tmp_path / "scenes" / "CLEVR_scenes.json")
    ]
    assert complete_config(scenes).objects == (min(numbers), max(numbers)) != scenes.objects
    found = {"data": str(named), "conditioner": "vocabulary"}
    assert complete_config(configure("exp1", "smoke", found)).objects == (0, 2)
    with pytest.raises(InputError, match=r"--objects 1-4: the images of .*named have 0-2"):
        complete_config(configure("exp1", "smoke", {**found, "objects": (1, 4)}))


def test_a_vocabulary_needs_data():
    with pytest.raises(InputError, match="give --data"):
        complete_config(configure("exp1", "smoke", {"conditioner": "vocabulary"}))
