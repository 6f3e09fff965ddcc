"""The official JSON: written and read back, read without a camera, and broken in every field."""

import copy
import json
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from composcope.errors import InputError
from composcope.scenes import Rules, load_clevr, sample
from composcope.scenes.clevr import to_scene, to_struct
from composcope.scenes.scene import CAMERA, HALF_HEIGHT, HALF_WIDTH, LAMPS


def made(index, count=4, size=(320, 240)):
    scene = sample(3, index, Rules(objects=(count, count)))
    return scene, to_struct(scene, index, size)


def bare(struct, size=(320, 240)):
    """A scene as the original CLEVR has it: whole pixels, no camera, no lamps."""
    struct = copy.deepcopy(struct)
    del struct["camera_location"], struct["lights"]
    for row in struct["objects"]:
        column, line, depth = row["pixel_coords"]
        row["pixel_coords"] = [round(column), round(line), depth]
    return struct


def test_scenes_come_back_as_they_were(tmp_path):
    scenes, structs = zip(*(made(i, i) for i in range(5)), strict=True)
    (tmp_path / "CLEVR_scenes.json").write_text(json.dumps({"info": {}, "scenes": structs}))
    assert load_clevr(tmp_path / "CLEVR_scenes.json") == list(scenes)
    (tmp_path / "each").mkdir()
    for i, struct in enumerate(structs):
        (tmp_path / "each" / f"{i}.json").write_text(json.dumps(struct))
    assert load_clevr(tmp_path / "each") == list(scenes)
    assert load_clevr(str(tmp_path / "each" / "2.json")) == [scenes[2]]


def test_relationships_and_directions_are_the_official_ones():
    scene, struct = made(0, 5)
    x, y, _ = scene.camera
    assert struct["directions"]["behind"] == pytest.approx(
        [-x / math.hypot(x, y), -y / math.hypot(x, y), 0]
    )
    assert struct["directions"]["right"] == pytest.approx(
        [-y / math.hypot(x, y), x / math.hypot(x, y), 0]
    )
    assert struct["directions"]["above"] == [0, 0, 1]
    places = np.array([row["3d_coords"] for row in struct["objects"]])
    for name in ("left", "right", "front", "behind"):
        along = places @ struct["directions"][name]
        expected = [[j for j in range(5) if along[j] > along[i] + 0.2] for i in range(5)]
        assert struct["relationships"][name] == expected
    assert {"split", "image_index", "image_filename"} <= set(struct)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8))
@example(510510, 1)  # one object alone hardly says where the camera is
def test_a_camera_that_was_not_recorded_is_found_from_where_objects_are_seen(index, count):
    scene, struct = made(index, count)
    found = to_scene(bare(struct), "here")
    off = (np.array(found.places) - np.array(scene.places)) * (320, 240)
    assert np.abs(off).max() < 1.5
    assert count < 3 or np.abs(np.subtract(found.camera, scene.camera)).max() < 0.3
    assert (found.key, found.fill, found.back) == tuple(
        LAMPS[name] for name in ("Key", "Fill", "Back")
    )


def test_the_published_images_of_480x320_are_understood():
    scene, struct = made(5, 6)
    for row, (u, v) in zip(struct["objects"], scene.places, strict=True):
        # 3:2 shows less above and below
        height = 0.5 + (v - 0.5) * HALF_HEIGHT / (HALF_WIDTH * 320 / 480)
        row["pixel_coords"] = [u * 480, height * 320, row["pixel_coords"][2]]
    found = to_scene(bare(struct), "here")
    assert np.abs(np.subtract(found.camera, scene.camera)).max() < 0.05


def test_without_pixels_or_with_impossible_ones_the_camera_is_the_base_one():
    _, struct = made(1)
    wrong = bare(struct)
    wrong["objects"][0]["pixel_coords"][0] += 60
    assert to_scene(wrong, "here").camera == CAMERA
    for row in wrong["objects"]:
        del row["pixel_coords"]
    assert to_scene(wrong, "here").camera == CAMERA


BROKEN = {
    "objects": lambda s: s.pop("objects"),
    r"objects\[1\]: the shape 'cone'": lambda s: s["objects"][1].update(shape="cone"),
    r"objects\[0\]: the color \['red'\]": lambda s: s["objects"][0].update(color=["red"]),
    r"objects\[0\]: the field `material` is missing": lambda s: s["objects"][0].pop("material"),
    r"objects\[2\]: the field `3d_coords`": lambda s: s["objects"][2].update({"3d_coords": [1, 2]}),
    r"objects\[2\]: the field `rotation`": lambda s: s["objects"][2].update(rotation="north"),
    "right above the origin": lambda s: s.update(camera_location=[0, 0, 10]),
    "the field `camera_location`": lambda s: s.update(camera_location=[1, 2, None]),
    "lights: the field `Key`": lambda s: s["lights"].update(Key=3),
    r"objects\[3\]: not an object": lambda s: s["objects"].__setitem__(3, 7),
}


@pytest.mark.parametrize("words", BROKEN)
def test_a_broken_scene_names_the_file_and_the_field(words, tmp_path):
    _, struct = made(2)
    BROKEN[words](struct)
    (tmp_path / "scenes.json").write_text(json.dumps({"scenes": [made(0)[1], struct]}))
    with pytest.raises(InputError, match=rf"scenes\.json, scenes\[1\].*{words}"):
        load_clevr(tmp_path / "scenes.json")


def test_broken_files_and_empty_folders_are_named(tmp_path):
    with pytest.raises(InputError, match=r"holds no scenes"):
        load_clevr(tmp_path)
    with pytest.raises(InputError, match=r"nowhere.json does not exist"):
        load_clevr(tmp_path / "nowhere.json")
    for content in ('{"objects": [', "\udcff"):
        (tmp_path / "bad.json").write_text(content, errors="surrogateescape")
        with pytest.raises(
            InputError, match=r"bad\.json: (JSON is malformed|Input data was truncated|Expected)"
        ):
            load_clevr(tmp_path)
    for content in ("[1]", '{"scenes": 3}', '{"scenes": [3]}', '{"info": {}}', "3"):
        (tmp_path / "bad.json").write_text(content)
        with pytest.raises(InputError, match=r"bad\.json"):
            load_clevr(tmp_path)
