"""Images of CLEVR scenes by ray casting: primary rays, shadows, one mirrored bounce.

    pixel = sRGB(mean over its samples of L(camera, ray)),  ray = forward + a * right + b * up,  (a, b) in [-1, 1]^2

Images are independent and each is computed in one fixed order, so bytes do not depend on the batch or on the threads.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int, UInt8
from numba import njit, prange

from composcope.errors import InputError
from composcope.scenes.geometry import FAR, axes, boxes, compiled, count_visible, hit, normal
from composcope.scenes.scene import COLORS, MATERIALS, SHAPES, Scene
from composcope.scenes.shading import ground, metal, rubber

COLUMNS = 10  # of a packed object, see scenes/geometry.py
SAMPLES = 192  # an object's pixels are sampled as finely as an image of about this many columns

_bytes = np.arange(4096) / 4095
SRGB = np.where(_bytes <= 0.0031308, 12.92 * _bytes, 1.055 * _bytes ** (1 / 2.4) - 0.055) * 255


def pack(scenes: Sequence[Scene]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of all objects one after the other, where each scene's begin, cameras [n, 3], lamps [n, 3, 3]."""
    rows, starts = [], [0]
    for scene in scenes:
        for o in scene.objects:
            kind = (float(SHAPES.index(o.shape)), o.radius, o.x, o.y, math.cos(o.rotation), math.sin(o.rotation))
            rows.append((*kind, float(MATERIALS.index(o.material)), *(c / 255 for c in COLORS[o.color])))
        starts.append(len(rows))
    cameras = np.array([s.camera for s in scenes], float).reshape(-1, 3)
    lamps = np.array([(s.key, s.fill, s.back) for s in scenes], float).reshape(-1, 3, 3)
    return np.array(rows, float).reshape(-1, COLUMNS), np.array(starts), cameras, lamps


def shape_of(size: int | tuple[int, int]) -> tuple[int, int]:
    """(width, height), both at least 1."""
    width, height = (size, size) if isinstance(size, int) else size
    if width < 1 or height < 1:
        raise InputError(f"an image of {width}x{height} pixels has no pixels; give sizes of at least 1")
    return width, height


def render(scenes: Sequence[Scene], size: int | tuple[int, int] = 128) -> UInt8[np.ndarray, "n h w 3"]:
    """Images of the scenes; `size` is the side of a square or (width, height), which the 4:3 view is squeezed to."""
    width, height = shape_of(size)
    out = np.empty((len(scenes), height, width, 3), np.uint8)
    _render(*pack(scenes), max(2, round(SAMPLES / width)), max(2, round(SAMPLES / height)), out)
    return out


def visible_pixels(scenes: Sequence[Scene], size: tuple[int, int] = (320, 240)) -> list[Int[np.ndarray, "objects"]]:
    """Per scene, how many pixels show each object: what the official 200-pixel rule counts."""
    objects, starts, cameras, _ = pack(scenes)
    spans = [objects[a:b] for a, b in pairwise(starts)]
    return [count_visible(own, camera, *shape_of(size)) for own, camera in zip(spans, cameras, strict=True)]


def layers(
    scenes: Sequence[Scene], size: int | tuple[int, int] = 128
) -> tuple[Int[np.ndarray, "n h w"], Float[np.ndarray, "n h w"]]:
    """Which object each pixel's centre shows (-1 for the ground), and its depth along the viewing direction."""
    width, height = shape_of(size)
    index, depth = np.empty((len(scenes), height, width), np.int64), np.empty((len(scenes), height, width))
    objects, starts, cameras, _ = pack(scenes)
    _layers(objects, starts, cameras, index, depth)
    return index, depth


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
def radiance(objects, lamps, who, t, ox, oy, oz, dx, dy, dz):
    """What a primary ray that meets object `who` (or the ground) at t shows: r, g, b."""
    if who < 0:
        t = -oz / min(dz, -1e-6)
        return ground(objects, lamps, ox + t * dx, oy + t * dy)
    x, y, z = ox + t * dx, oy + t * dy, oz + t * dz
    nx, ny, nz = normal(objects[who], x, y, z)
    scale = -1 / math.sqrt(dx * dx + dy * dy + dz * dz)
    vx, vy, vz = dx * scale, dy * scale, dz * scale
    if objects[who, 6] == 1:
        return metal(objects, who, lamps, x, y, z, nx, ny, nz, vx, vy, vz)
    return rubber(objects, who, lamps, x, y, z, nx, ny, nz, vx, vy, vz)


@compiled
def encode(value):
    """Linear [0, 1] to an sRGB byte, by table."""
    at = min(max(value, 0.0), 1.0) * 4095
    low = min(int(at), 4094)
    return np.uint8(SRGB[low] + (at - low) * (SRGB[low + 1] - SRGB[low]) + 0.5)


@compiled
def image(objects, camera, lamps, across, down, out):
    """One image: one sample for a pixel of bare ground, across x down samples where an object may be."""
    height, width = out.shape[:2]
    frame = axes(camera)
    box = boxes(objects, camera, frame, width, height)
    ox, oy, oz = camera
    for row in range(height):
        for col in range(width):
            near = False
            for i in range(len(objects)):
                near |= box[i, 0] <= col < box[i, 1] and box[i, 2] <= row < box[i, 3]
            m, n = (across, down) if near else (1, 1)
            r = g = b = 0.0
            for k in range(m * n):
                u = (2 * (col + (k % m + 0.5) / m)) / width - 1
                v = 1 - (2 * (row + (k // m + 0.5) / n)) / height
                dx = frame[2, 0] + u * frame[0, 0] + v * frame[1, 0]
                dy = frame[2, 1] + u * frame[0, 1] + v * frame[1, 1]
                dz = frame[2, 2] + u * frame[0, 2] + v * frame[1, 2]
                who, t = first(objects, box, row, col, ox, oy, oz, dx, dy, dz)
                lr, lg, lb = radiance(objects, lamps, who, t, ox, oy, oz, dx, dy, dz)
                r, g, b = r + lr, g + lg, b + lb
            scale = 1 / (m * n)
            out[row, col, 0] = encode(r * scale)
            out[row, col, 1] = encode(g * scale)
            out[row, col, 2] = encode(b * scale)


@njit(cache=True, error_model="numpy", parallel=True)
def _render(objects, starts, cameras, lamps, across, down, out):
    for i in prange(len(out)):
        image(objects[starts[i] : starts[i + 1]], cameras[i], lamps[i], across, down, out[i])


@njit(cache=True, error_model="numpy", parallel=True)
def _layers(objects, starts, cameras, index, depth):
    height, width = index.shape[1:]
    for i in prange(len(index)):
        own, (ox, oy, oz) = objects[starts[i] : starts[i + 1]], cameras[i]
        frame = axes(cameras[i])
        box = boxes(own, cameras[i], frame, width, height)
        for row in range(height):
            for col in range(width):
                u, v = (2 * col + 1) / width - 1, 1 - (2 * row + 1) / height
                dx = frame[2, 0] + u * frame[0, 0] + v * frame[1, 0]
                dy = frame[2, 1] + u * frame[0, 1] + v * frame[1, 1]
                dz = frame[2, 2] + u * frame[0, 2] + v * frame[1, 2]
                who, t = first(own, box, row, col, ox, oy, oz, dx, dy, dz)
                index[i, row, col] = who  # the forward axis has length 1, so t is the depth
                depth[i, row, col] = t if who >= 0 else -oz / min(dz, -1e-6)
