"""Streams and folders: a batch is a pure function of where it starts, in whichever thread, and of
nothing else."""

import json
import subprocess
import sys

import numba
import numpy as np
import pytest
import torch
from PIL import Image

from composcope.errors import InputError
from composcope.scenes import (
    ColorCounts,
    Folder,
    LocationGrid,
    LocationList,
    Rules,
    Stream,
    render,
    sample,
)
from composcope.scenes.export import Job, export


def same(a, b):
    images, cond = torch.equal(a.images, b.images), torch.equal(a.cond, b.cond)
    return images and cond and a.condition_sets == b.condition_sets


def rows(batch, some):
    return type(batch)(batch.images[some], batch.condition_sets[some], batch.cond[some])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "clevr"
    export(Job(6, (40, 30), rules=Rules((1, 3)), seed=4), path)
    return path


@pytest.fixture(params=["stream", "folder"])
def data(request, folder):
    if request.param == "stream":
        return Stream(Rules(), 16, LocationList(), "random", seed=5)
    return Folder(folder, 16, LocationList(), "random", seed=5)


def test_a_batch_does_not_depend_on_how_it_is_cut_or_on_the_threads(data):
    whole = data.batch(1000, 8)
    assert same(rows(whole, slice(3)), data.batch(1000, 3))
    assert same(rows(whole, slice(3, 8)), data.batch(1003, 5))
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    several = data.batch(1000, 8)
    numba.set_num_threads(1)
    assert same(several, whole)


def test_images_are_the_rendered_scenes_and_conditions_what_they_show():
    batch = Stream(Rules(), (20, 16), LocationGrid(8), seed=2).batch(7, 3)
    scenes = [sample(2, i, Rules()) for i in (7, 8, 9)]
    back = ((batch.images + 1) * 127.5).round().byte().permute(0, 2, 3, 1).numpy()
    assert batch.images.shape == (3, 3, 16, 20)
    assert np.array_equal(back, render(scenes, (20, 16)))
    assert batch.condition_sets == [scene.places for scene in scenes]
    assert torch.equal(batch.cond, LocationGrid(8)(batch.condition_sets))


def test_seeds_give_other_images_and_other_labels():
    one, two = (Stream(Rules((3, 3)), 8, ColorCounts(), "one", seed).batch(0, 4) for seed in (0, 1))
    assert not torch.equal(one.images, two.images)
    everything = Stream(Rules((3, 3)), 8, ColorCounts(), seed=0).batch(0, 40).condition_sets
    labels = Stream(Rules((3, 3)), 8, ColorCounts(), "one", seed=0).batch(0, 40).condition_sets
    chosen = [whole.index(label[0]) for whole, label in zip(everything, labels, strict=True)]
    assert set(chosen) == {0, 1, 2}


def test_a_folder_is_gone_through_in_a_new_order_each_time(folder):
    data = Folder(folder, 8, ColorCounts(), seed=1)
    turns = [[data.position(turn * 6 + i) for i in range(6)] for turn in range(4)]
    assert all(sorted(turn) == list(range(6)) for turn in turns)
    assert len({tuple(turn) for turn in turns}) > 1
    assert [data.position(i) for i in (13, 12)] == [turns[2][1], turns[2][0]]


def test_a_folder_shows_what_its_files_say(folder):
    data = Folder(folder, (40, 30), LocationGrid(8), seed=1)
    batch = data.batch(0, 6)
    for row in range(6):
        scene = sample(4, data.position(row), Rules((1, 3)))
        image = ((batch.images[row] + 1) * 127.5).round().byte().permute(1, 2, 0).numpy()
        assert np.array_equal(image, render([scene], (40, 30))[0])
        assert np.allclose(batch.condition_sets[row], scene.places, atol=1e-9)


def test_the_layout_of_the_original_clevr_and_of_one_file_a_scene(folder, tmp_path):
    structs = json.loads((folder / "CLEVR_scenes.json").read_text())["scenes"]
    (tmp_path / "scenes").mkdir()
    (tmp_path / "images" / "new").mkdir(parents=True)
    for i, struct in enumerate(structs):
        Image.open(folder / "images" / struct["image_filename"]).save(
            tmp_path / "images" / "new" / struct["image_filename"]
        )
        for row in struct["objects"]:  # whole pixels, as the original has them
            column, line, _ = row["pixel_coords"]
            row["pixel_coords"] = [round(column), round(line), 1.0]
        del struct["camera_location"]
        (tmp_path / "scenes" / f"{i}.json").write_text(json.dumps(struct))
    ours, theirs = (
        Folder(path, 8, LocationGrid(8), seed=1).batch(0, 6) for path in (folder, tmp_path)
    )
    assert torch.equal(ours.images, theirs.images)
    for a, b in zip(ours.condition_sets, theirs.condition_sets, strict=True):
        assert np.abs(np.subtract(a, b)).max() <= 0.5 / 30


def test_a_folder_that_lacks_something_says_what(folder, tmp_path):
    with pytest.raises(InputError, match="does not say what its pictures show"):
        Folder(tmp_path, 8, ColorCounts()).batch(0, 1)
    (tmp_path / "CLEVR_scenes.json").write_text('{"scenes": []}')
    with pytest.raises(InputError, match="has no pictures to draw from"):
        Folder(tmp_path, 8, ColorCounts()).batch(0, 1)
    (tmp_path / "CLEVR_scenes.json").write_text((folder / "CLEVR_scenes.json").read_text())
    with pytest.raises(InputError, match=r"scenes\[0\]: there is no image .*CLEVR_new_000000.png"):
        Folder(tmp_path, 8, ColorCounts()).batch(0, 1)
    (tmp_path / "images").mkdir()
    for i in range(6):
        (tmp_path / "images" / f"CLEVR_new_{i:06d}.png").write_text("no")
    with pytest.raises(InputError, match="is neither a PNG nor a JPEG"):
        Folder(tmp_path, 8, ColorCounts()).batch(0, 1)


def test_scenes_need_no_torch():
    code = "import sys, composcope.scenes as s; print('torch' in sys.modules, s.Stream, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "<class", "'composcope.scenes.dataset.Stream'>", "True"]
