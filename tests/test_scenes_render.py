"""Images against closed forms (ground, sphere), against themselves (threads, batches, sizes) and
against Blender."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest

from bench.fidelity import compare, read
from composcope.errors import InputError
from composcope.scenes.render import layers, render, visible_pixels
from composcope.scenes.scene import (
    COLORS,
    HALF_HEIGHT,
    HALF_WIDTH,
    Object,
    Scene,
    camera_axes,
    project,
)

REFERENCE = Path(__file__).parent / "data" / "clevr_reference"
ONE = Scene((Object("sphere", "large", "rubber", "red", 0.5, -0.7),))


def some(count: int = 6) -> list[Scene]:
    """Scenes of one to three objects of every shape, material and many colours, with cameras and
    lamps moved."""
    draw = np.random.default_rng(3)
    names = list(COLORS)
    scenes = []
    for i in range(count):
        objects = tuple(
            Object(
                ("cube", "sphere", "cylinder")[(i + k) % 3],
                ("large", "small")[k % 2],
                ("metal", "rubber")[(i + k // 2) % 2],
                names[(3 * i + k) % 8],
                *draw.uniform(-2.5, 2.5, 2).tolist(),
                float(draw.uniform(0, 360)),
            )
            for k in range(1 + i % 3)
        )
        base = Scene()
        moved = (
            tuple((np.array(place) + draw.uniform(-0.5, 0.5, 3)).tolist())
            for place in (base.camera, base.key, base.fill, base.back)
        )
        scenes.append(Scene(objects, *moved))
    return scenes


def rays(size: tuple[int, int], scene: Scene) -> np.ndarray:
    """Directions through the pixels' centres [h, w, 3], with length 1 along the viewing
    direction."""
    width, height = size
    right, up, forward = camera_axes(scene.camera)
    u, v = (np.arange(width) + 0.5) / width * 2 - 1, 1 - (np.arange(height) + 0.5) / height * 2
    return forward + u[None, :, None] * HALF_WIDTH * right + v[:, None, None] * HALF_HEIGHT * up


@pytest.mark.parametrize("size", [32, (48, 36)])
def test_bytes_do_not_depend_on_batch_order_or_threads(size):
    scenes = some()
    together = render(scenes, size)
    np.testing.assert_array_equal(
        together, np.concatenate([render([scene], size) for scene in scenes])
    )
    np.testing.assert_array_equal(together[::-1], render(scenes[::-1], size))
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)
    several = render(scenes, size)
    numba.set_num_threads(1)
    np.testing.assert_array_equal(together, several)


def test_sizes_and_empty_batches():
    assert render([ONE], (20, 9)).shape == (1, 9, 20, 3)
    assert render([], 16).shape == (0, 16, 16, 3)
    assert render([Scene()], 1).shape == (1, 1, 1, 3)
    assert visible_pixels([Scene()])[0].shape == (0,)
    with pytest.raises(InputError, match="0x8"):
        render([ONE], (0, 8))


def test_visible_pixels_are_those_recorded_with_the_reference_renders():
    scenes, _ = read(REFERENCE)
    records = [json.loads(file.read_text()) for file in sorted(REFERENCE.glob("scenes/*.json"))]
    for found, record in zip(visible_pixels(scenes), records, strict=True):
        np.testing.assert_array_equal(found, [o["visible_pixels"] for o in record["objects"]])


def test_a_sphere_has_as_many_visible_pixels_as_its_mask_and_a_hidden_object_none():
    # behind the sphere, seen from the camera
    hidden = Object("cube", "small", "metal", "blue", 0.2, -0.45)
    scene = Scene((*ONE.objects, hidden))
    index, _ = layers([scene], (320, 240))
    counts = visible_pixels([scene])[0]
    assert counts[0] == np.sum(index == 0) > 1000
    assert counts[1] < visible_pixels([Scene((hidden,))])[0][0] / 3


def test_masks_lie_where_project_says():
    scenes = [Scene((o,), s.camera) for s in some() for o in s.objects]
    index, _ = layers(scenes, (320, 240))
    for scene, mask in zip(scenes, index == 0, strict=True):
        rows, cols = np.nonzero(mask)
        u, v, depth = project(
            scene.camera, (scene.objects[0].x, scene.objects[0].y, scene.objects[0].radius)
        )
        pixels = scene.objects[0].radius / depth / HALF_WIDTH * 160  # the radius on the image
        assert (
            math.hypot(cols.mean() + 0.5 - 320 * u, rows.mean() + 0.5 - 240 * v)
            < 0.1 * pixels + 0.5
        )


def test_depth_is_that_of_the_ground_plane_and_of_the_sphere():
    size = (64, 48)
    index, depth = layers([ONE], size)
    origin, direction = np.array(ONE.camera), rays(size, ONE)
    flat = -origin[2] / direction[..., 2]
    np.testing.assert_allclose(depth[0][index[0] == -1], flat[index[0] == -1], rtol=1e-12)
    ball = ONE.objects[0]
    out = origin - np.array([ball.x, ball.y, ball.radius])
    a, b, c = (direction**2).sum(-1), direction @ out, out @ out - ball.radius**2
    met = b * b > a * c
    np.testing.assert_array_equal(index[0] == 0, met)
    np.testing.assert_allclose(
        depth[0][met], ((-b - np.sqrt(np.maximum(b * b - a * c, 0))) / a)[met], rtol=1e-9
    )


def test_a_rounded_cube_lies_within_the_sharp_one_and_meets_it_on_the_faces():
    cube = Object("cube", "large", "rubber", "gray", 0.0, 0.0, 0.0)
    index, depth = layers([Scene((cube,))], (320, 240))
    points = np.array(Scene().camera) + depth[0][..., None] * rays((320, 240), Scene())
    unit = abs((points - [0, 0, cube.radius]) / cube.radius)[index[0] == 0]
    assert unit.max() < 1 + 1e-3
    # both coordinates within the face: the third is the face's
    flat = np.sort(unit, axis=-1)[:, 1] < 0.7
    assert flat.sum() > 500
    np.testing.assert_allclose(unit[flat].max(-1), 1, atol=2e-3)


def linear(images: np.ndarray) -> np.ndarray:
    """Light from sRGB bytes."""
    value = images / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("size", [32, 64])
def test_a_small_image_is_a_large_one_seen_from_afar(size):
    """Anti-aliasing: the mean light of 4x4 pixels of a larger image (rubber: metal's highlights
    clip there)."""
    rubber = [
        replace(s, objects=tuple(replace(o, material="rubber") for o in s.objects)) for s in some()
    ]
    small, large = linear(render(rubber, size)), linear(render(rubber, 4 * size))
    blocks = large.reshape(-1, size, 4, size, 4, 3)
    mean = blocks.mean((2, 4))
    assert abs(small - mean).mean((1, 2, 3)).max() < 0.004  # of a mean light of about 0.16
    # elsewhere both errors are the rounding to bytes
    edges = np.ptp(blocks, axis=(2, 4)).max(-1) > 0.1
    assert edges.sum() > 20
    # one sample a pixel: what it would be without
    jagged = abs(large[:, 2::4, 2::4] - mean)[edges].mean()
    assert abs(small - mean)[edges].mean() < 0.6 * jagged


def test_metal_is_not_rubber_and_colours_show():
    def ball(material: str, color: str) -> np.ndarray:
        scene = Scene((Object("sphere", "large", material, color, 0.0, 0.0),))
        return render([scene], 64)[0][layers([scene], 64)[0][0] == 0].astype(float)

    # highlights, mirrored ground
    assert ball("metal", "red").std(0).max() > 1.5 * ball("rubber", "red").std(0).max()
    for material in ("metal", "rubber"):
        for color, channel in (("red", 0), ("green", 1), ("blue", 2)):
            assert ball(material, color).mean(0).argmax() == channel


def test_an_object_darkens_the_ground_beside_it_only():
    empty, full = render([Scene(), ONE], 64).astype(int)
    difference = empty - full
    bare = layers([ONE], 64)[0][0] == -1
    assert difference[bare].max() > 20
    assert (abs(difference[bare]).max(-1) == 0).mean() > 0.5


def test_images_are_close_to_blenders():
    """Floors: 30 dB and 0.93 over whole images, 22 dB over objects and shadows; we ask for more, in
    every image."""
    psnr, ssim, parts = compare(*read(REFERENCE))
    assert psnr.min() > 32
    assert ssim.min() > 0.96
    assert parts.min() > 26
