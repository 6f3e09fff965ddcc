"""Images of CLEVR scenes by ray casting: primary rays, shadows, one mirrored bounce.

    pixel = sRGB(mean over its samples of L(camera, ray)),   ray = forward + a right + b up

Images are independent and each is computed in one fixed order, so bytes do not depend on the batch
or on the threads."""

import math
import operator
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int, UInt8
from numba import prange

from composcope.compiled import compiled, parallel
from composcope.errors import InputError
from composcope.scenes.geometry import (
    CUBE,
    FAR,
    axes,
    boxes,
    hit,
    ray,
    surface_normal,
    visible,
    widen,
)
from composcope.scenes.scene import COLORS, MATERIALS, SHAPES, VIEWS, Scene
from composcope.scenes.shading import (
    LIGHTS,
    beam,
    darken,
    ground_radiance,
    lights_of,
    metal,
    rubber,
)

COLUMNS = 10  # of a packed object, see scenes/geometry.py
MOST_PIXELS = 2**26
OFFICIAL = 320, 240  # the size of the generator's images
Size = int | tuple[int, int]  # a side, or width and height
SAMPLES = 128  # an object's pixels are sampled as finely as an image of about this many columns

_bytes = np.arange(4096) / 4095
SRGB = np.where(_bytes <= 0.0031308, 12.92 * _bytes, 1.055 * _bytes ** (1 / 2.4) - 0.055) * 255


def pack(scenes: Sequence[Scene]) -> tuple[np.ndarray, ...]:
    """Rows of objects, where each scene's begin, cameras [n, 3], half widths, lamps [n, 3, 3]."""
    rows, starts = [], [0]
    for scene in scenes:
        for o in scene.objects:
            turn = math.cos(o.rotation), math.sin(o.rotation)
            look = float(MATERIALS.index(o.material)), *(c / 255 for c in COLORS[o.color])
            rows.append((float(SHAPES.index(o.shape)), o.radius, o.x, o.y, *turn, *look))
        starts.append(len(rows))
    cameras = np.array([s.camera for s in scenes], float).reshape(-1, 3)
    lamps = np.array([(s.key, s.fill, s.back) for s in scenes], float).reshape(-1, 3, 3)
    halves = np.array([VIEWS[s.view] for s in scenes], float)
    return np.array(rows, float).reshape(-1, COLUMNS), np.array(starts), cameras, halves, lamps


def frame_size(size: Size) -> tuple[int, int]:
    """(width, height), both at least 1."""
    try:
        sides = size if isinstance(size, tuple | list) else (size, size)
        width, height = map(operator.index, sides)
    except (TypeError, ValueError):
        raise InputError(f"a size is a side or (width, height), not {size!r}") from None
    if min(width, height) < 1 or width * height > MOST_PIXELS:
        advice = "give sizes of at least 1, and no more than 2^26 pixels"
        raise InputError(f"an image of {width}x{height} pixels: {advice}")
    return width, height


def render(scenes: Sequence[Scene], size: Size = 128) -> UInt8[np.ndarray, "n h w 3"]:
    """Images of scenes; `size` is a side or (width, height), to which the view is squeezed."""
    if isinstance(scenes, Scene):
        raise InputError("render takes a list of scenes; of a single one: render([scene])")
    if not isinstance(scenes, Sequence) or not all(isinstance(one, Scene) for one in scenes):
        raise InputError(f"render takes a list of scenes, not {repr(scenes)[:60]}")
    width, height = frame_size(size)
    across, down = (2 * max(1, round(SAMPLES / side / 2)) for side in (width, height))
    out = np.empty((len(scenes), height, width, 3), np.uint8)
    _render(*pack(scenes), across, down, out)
    return out


def visible_pixels(scenes: Sequence[Scene]) -> list[Int[np.ndarray, "objects"]]:
    """Per scene, how many pixels show each object: what the official 200-pixel rule counts."""
    objects, starts, cameras, halves, _ = pack(scenes)
    spans = [objects[a:b] for a, b in pairwise(starts)]
    seen = zip(spans, cameras, halves, strict=True)
    return [count_visible(own, camera, half, *OFFICIAL) for own, camera, half in seen]


def layers(
    scenes: Sequence[Scene], size: Size = 128
) -> tuple[Int[np.ndarray, "n h w"], Float[np.ndarray, "n h w"]]:
    """Which object each pixel's centre shows (-1: the ground), and its depth along the view."""
    width, height = frame_size(size)
    depth = np.empty((len(scenes), height, width))
    index = np.empty(depth.shape, np.int64)
    _layers(*pack(scenes)[:4], index, depth)
    return index, depth


@compiled
def count_visible(objects, camera, half_width, width, height):
    """Pixels whose centre shows each of the packed objects: int64 [n]."""
    frame = axes(camera, half_width)
    box = boxes(objects, camera, frame, width, height)
    out = np.zeros(len(objects), np.int64)
    for i in range(len(objects)):
        out[i] = visible(objects, i, box, camera, frame, width, height, width * height)
    return out


@compiled
def first(objects, box, row, col, ox, oy, oz, dx, dy, dz):
    """The nearest object a primary ray of this pixel meets, and where: (index or -1, t)."""
    best, who = FAR, -1
    for i in range(len(objects)):
        if box[i, 0] <= col < box[i, 1] and box[i, 2] <= row < box[i, 3]:
            t = hit(objects[i], False, ox, oy, oz, dx, dy, dz)
            if t < best:
                best, who = t, i
    return who, best


@compiled
def encode(value):
    """Linear [0, 1] to an sRGB byte, by table."""
    at = min(max(value, 0.0), 1.0) * 4095
    low = min(int(at), 4094)
    return np.uint8(SRGB[low] + (at - low) * (SRGB[low + 1] - SRGB[low]) + 0.5)


@compiled
def shadow_boxes(objects, lights, camera, frame, pixel, width, height):
    """Per object and lamp the pixels of ground its shadow may touch, with penumbra and a pixel."""
    out = np.empty((len(objects), LIGHTS, 4), np.int64)
    for i in range(len(objects)):
        row = objects[i]
        for k in range(LIGHTS):
            box, light = out[i, k], lights[k]
            box[0], box[1], box[2], box[3] = width, 0, height, 0
            dx, dy, dz, _, spread, _ = beam(light, k == 3, row[2], row[3], row[1])
            half = row[1] + spread * 2 * row[1] / dz + pixel
            wide = half * 1.415 if row[0] == CUBE else half
            for corner in range(8):
                x = row[2] + (2 * (corner & 1) - 1) * wide
                y = row[3] + (2 * (corner >> 1 & 1) - 1) * wide
                z = row[1] + (2 * (corner >> 2) - 1) * half
                if k < 3:  # along the line from the lamp through the corner, down to the ground
                    dx, dy, dz = light[0] - x, light[1] - y, max(light[2] - z, 0.05)
                x, y = x - dx * z / dz, y - dy * z / dz
                widen(box, frame, x - camera[0], y - camera[1], -camera[2], width, height)
    return out


@compiled
def bare_row(lights, camera, frame, row, height, points, out):
    """A row of bare ground: where its centres look into points [2, w], radiance into out [3, w]."""
    width, v = points.shape[1], 1 - (2 * row + 1) / height
    for col in range(width):
        u = (2 * col + 1) / width - 1
        dx, dy, dz = ray(frame, u, v)
        t = -camera[2] / min(dz, -1e-6)
        points[0, col] = camera[0] + t * dx
        points[1, col] = camera[1] + t * dy
    ground_radiance(lights, points[0], points[1], out)


@compiled
def surface(objects, lights, who, stray, pixel, camera, x, y, z):
    """Radiance of object `who` at a point of its surface: r, g, b."""
    nx, ny, nz = surface_normal(objects[who], x, y, z)
    vx, vy, vz = camera[0] - x, camera[1] - y, camera[2] - z
    scale = 1 / math.sqrt(vx * vx + vy * vy + vz * vz)
    vx, vy, vz = vx * scale, vy * scale, vz * scale
    if objects[who, 6] == 1:
        return metal(objects, who, lights, stray, pixel, x, y, z, nx, ny, nz, vx, vy, vz)
    return rubber(objects, who, lights, False, x, y, z, nx, ny, nz, vx, vy, vz)


@compiled
def image(objects, camera, half_width, lamps, across, down, out):
    """One image: a sample for a pixel of bare ground, across x down rays where an object may be.

    Their hits are shaded once for each 2x2 of them that shows the same object, metal (whose
    highlights are small) each."""
    height, width = out.shape[:2]
    frame, lights = axes(camera, half_width), lights_of(lamps)
    ox, oy, oz = camera
    far = math.sqrt(ox * ox + oy * oy + oz * oz)
    # half a pixel's width at the origin, by which shadows are softened
    pixel = far * half_width / width
    box = boxes(objects, camera, frame, width, height)
    shadows = shadow_boxes(objects, lights, camera, frame, pixel, width, height)
    whos, points = np.empty(4, np.int64), np.empty((4, 3))
    places, bare = np.empty((2, width)), np.empty((3, width))
    for row in range(height):
        bare_row(lights, camera, frame, row, height, places, bare)
        for col in range(width):
            near = False
            for i in range(len(objects)):
                near |= box[i, 0] <= col < box[i, 1] and box[i, 2] <= row < box[i, 3]
            r = g = b = gx = gy = 0.0
            open_rays = 0
            for block in range(across * down // 4 if near else 0):
                left, top = block % (across // 2) * 2, block // (across // 2) * 2
                for k in range(4):
                    u = 2 * (col + (left + (k & 1) + 0.5) / across) / width - 1
                    v = 1 - 2 * (row + (top + (k >> 1) + 0.5) / down) / height
                    dx, dy, dz = ray(frame, u, v)
                    who, t = first(objects, box, row, col, ox, oy, oz, dx, dy, dz)
                    whos[k] = who
                    if who < 0:
                        t = -oz / min(dz, -1e-6)
                        gx, gy, open_rays = gx + t * dx, gy + t * dy, open_rays + 1
                    points[k, 0], points[k, 1], points[k, 2] = ox + t * dx, oy + t * dy, oz + t * dz
                for k in range(4):
                    who = whos[k]
                    if who < 0:
                        continue
                    x, y, z, same = points[k, 0], points[k, 1], points[k, 2], 1
                    if objects[who, 6] == 0 or across > 2:
                        for j in range(k + 1, 4):
                            if whos[j] == who:
                                x, y, z = x + points[j, 0], y + points[j, 1], z + points[j, 2]
                                same += 1
                                whos[j] = -1
                        x, y, z = x / same, y / same, z / same
                    stray, blur = k if across == 2 else block, pixel * 2 / across
                    lr, lg, lb = surface(objects, lights, who, stray, blur, camera, x, y, z)
                    r, g, b = r + same * lr, g + same * lg, b + same * lb
            share = 1.0
            if near:
                scale = 1 / (across * down)
                r, g, b, share = r * scale, g * scale, b * scale, open_rays * scale
            if share > 0:  # the ground that the rays past the objects meet
                x, y = places[0, col], places[1, col]
                if near:
                    x, y = ox + gx / open_rays, oy + gy / open_rays
                dr, dg, db = darken(objects, lights, shadows, row, col, pixel, x, y)
                r += share * (bare[0, col] - dr)
                g += share * (bare[1, col] - dg)
                b += share * (bare[2, col] - db)
            out[row, col, 0], out[row, col, 1], out[row, col, 2] = encode(r), encode(g), encode(b)


@parallel
def _render(objects, starts, cameras, halves, lamps, across, down, out):
    for i in prange(len(out)):
        own = objects[starts[i] : starts[i + 1]]
        image(own, cameras[i], halves[i], lamps[i], across, down, out[i])


@parallel
def _layers(objects, starts, cameras, halves, index, depth):
    height, width = index.shape[1:]
    for i in prange(len(index)):
        own, (ox, oy, oz) = objects[starts[i] : starts[i + 1]], cameras[i]
        frame = axes(cameras[i], halves[i])
        box = boxes(own, cameras[i], frame, width, height)
        for row in range(height):
            for col in range(width):
                u, v = (2 * col + 1) / width - 1, 1 - (2 * row + 1) / height
                dx, dy, dz = ray(frame, u, v)
                who, t = first(own, box, row, col, ox, oy, oz, dx, dy, dz)
                index[i, row, col] = who  # the forward axis has length 1, so t is the depth
                depth[i, row, col] = t if who >= 0 else -oz / min(dz, -1e-6)
