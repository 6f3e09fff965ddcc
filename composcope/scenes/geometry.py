"""Rays against the three shapes: hits, normals, and how far a ray passes from a shape.

Every shape is convex, of unit size in its own frame (half height 1), turned about z, scaled by its
radius and set on the ground. Its distance function is the one of a flat core with a rounded rim:

    d(p) = |max(|p| - flat, 0)| - rim    (for cubes with the norm of fourth powers, which cuts less
                                          off the corners)

A packed object is a row of float64: shape (index in SHAPES), radius, x, y, cosine and sine of the
rotation (the recorded number taken as radians), metal (0 or 1), r, g, b (linear)."""

import math

import numpy as np

from composcope.compiled import compiled
from composcope.scenes.scene import HALF_HEIGHT

CUBE, SPHERE, CYLINDER = 0.0, 1.0, 2.0  # indices in SHAPES
# a cube's rims begin here; of fourth power, they leave its faces flat to 0.001 within 0.768
CUBE_FLAT = 0.70
# a cylinder's top is flat within this radius, its side straight within this height
CAP_FLAT, SIDE_FLAT = 0.921, 0.900
BOUND = (1.733, 1.0, 1.415)  # radius of a sphere around each unit shape
MIDDLE = (1.2, 1.0, 1.15)  # ... and of the sphere that stands for it in mirrored shadows
GOLDEN = 0.6180339887498949
FAR = 1e9


@compiled
def into(row, x, y, z, scale):
    """A vector (already relative to the centre, if a point) in the frame of the unit shape."""
    c, s = row[4], row[5]
    return (c * x + s * y) * scale, (c * y - s * x) * scale, z * scale


@compiled
def distance(shape, x, y, z):
    """Signed distance (cylinder's rim: a lower bound of it) of a point from the unit shape."""
    if shape == SPHERE:
        return math.sqrt(x * x + y * y + z * z) - 1
    if shape == CUBE:
        a, b, c = abs(x) - CUBE_FLAT, abs(y) - CUBE_FLAT, abs(z) - CUBE_FLAT
        a, b, c, inner = max(a, 0.0) ** 2, max(b, 0.0) ** 2, max(c, 0.0) ** 2, max(a, b, c)
        outside = math.sqrt(math.sqrt(a * a + b * b + c * c))
        return outside + min(inner, 0.0) - (1 - CUBE_FLAT)
    a, b = math.sqrt(x * x + y * y) - 1, abs(z) - 1
    if a > CAP_FLAT - 1 and b > SIDE_FLAT - 1:  # the rim is a quarter of an ellipse
        p, q = a / (1 - CAP_FLAT) + 1, b / (1 - SIDE_FLAT) + 1
        return (math.sqrt(p * p + q * q) - 1) * (1 - CAP_FLAT)
    return max(a, b)


@compiled
def enter(shape, ox, oy, oz, dx, dy, dz):
    """Where o + t d enters and leaves the unit shape with sharp edges (no sphere): (near, far)."""
    near, far = (-1 - oz) / dz, (1 - oz) / dz
    near, far = min(near, far), max(near, far)
    if shape == CUBE:
        p, q = (-1 - ox) / dx, (1 - ox) / dx
        near, far = max(near, min(p, q)), min(far, max(p, q))
        p, q = (-1 - oy) / dy, (1 - oy) / dy
        return max(near, min(p, q)), min(far, max(p, q))
    a, b = dx * dx + dy * dy, ox * dx + oy * dy
    root = math.sqrt(max(b * b - a * (ox * ox + oy * oy - 1), 0.0))
    return max(near, (-b - root) / a), min(far, (root - b) / a)


@compiled
def hit_unit(shape, sharp, ox, oy, oz, dx, dy, dz):
    """The first t > 0 at which o + t d enters the unit shape (`sharp`: without rims), or FAR."""
    if shape == SPHERE:
        a, b = dx * dx + dy * dy + dz * dz, ox * dx + oy * dy + oz * dz
        delta = b * b - a * (ox * ox + oy * oy + oz * oz - 1)
        return -(b + math.sqrt(delta)) / a if delta > 0 and b < 0 else FAR
    near, far = enter(shape, ox, oy, oz, dx, dy, dz)
    if near >= far or near <= 0:
        return FAR
    if sharp:
        return near
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    for _ in range(40):  # walk on from the sharp shape to the rounded one
        step = distance(shape, ox + near * dx, oy + near * dy, oz + near * dz)
        if step < 5e-4:
            return near
        near += step / length
        if near > far:
            return FAR
    return FAR


@compiled
def hit(row, sharp, ox, oy, oz, dx, dy, dz):
    """The first t > 0 at which the ray o + t d meets the object, or FAR."""
    scale = 1 / row[1]
    px, py, pz = into(row, ox - row[2], oy - row[3], oz - row[1], scale)
    qx, qy, qz = into(row, dx, dy, dz, scale)
    return hit_unit(row[0], sharp, px, py, pz, qx, qy, qz)


@compiled
def surface_normal(row, x, y, z):
    """The unit normal of the object at a point of its surface."""
    px, py, pz = into(row, x - row[2], y - row[3], z - row[1], 1 / row[1])
    if row[0] == CUBE:
        nx = math.copysign(max(abs(px) - CUBE_FLAT, 0.0) ** 3, px)
        ny = math.copysign(max(abs(py) - CUBE_FLAT, 0.0) ** 3, py)
        nz = math.copysign(max(abs(pz) - CUBE_FLAT, 0.0) ** 3, pz)
    elif row[0] == CYLINDER:
        rho = math.sqrt(px * px + py * py)
        side = max(rho - CAP_FLAT, 0.0) / (1 - CAP_FLAT) ** 2 / rho
        nx, ny = px * side, py * side
        nz = math.copysign(max(abs(pz) - SIDE_FLAT, 0.0), pz) / (1 - SIDE_FLAT) ** 2
    else:
        nx, ny, nz = px, py, pz
    scale = 1 / math.sqrt(nx * nx + ny * ny + nz * nz + 1e-30)
    c, s = row[4], row[5]
    return (c * nx - s * ny) * scale, (s * nx + c * ny) * scale, nz * scale


@compiled
def bend(row, nx, ny, nz):
    """How fast the normal turns along the surface where it is n: an inverse radius."""
    if row[0] == SPHERE:
        return 1 / row[1]
    side = 1 - abs(nz)
    if row[0] == CUBE:
        side = max(abs(row[4] * nx + row[5] * ny), abs(row[4] * ny - row[5] * nx))
    if max(side, abs(nz)) < 0.98:
        return 1 / (row[1] * (1 - (CUBE_FLAT if row[0] == CUBE else CAP_FLAT)))
    return 0.5 / row[1] if row[0] == CYLINDER and abs(nz) < 0.5 else 0.0


@compiled
def clearance(row, rough, ox, oy, oz, dx, dy, dz, t, margin):
    """How far a ray (d of length 1), nearest the centre at t, passes from the object, or < 0.

    Distance along a ray is convex for a convex shape, so a golden-section search finds its least
    value. A ray that passes within less than `margin` of neither silhouette, and every ray if
    `rough`, is judged by a sphere alone."""
    cx, cy, cz = row[2] - ox, row[3] - oy, row[1] - oz
    gap = math.sqrt((t * dx - cx) ** 2 + (t * dy - cy) ** 2 + (t * dz - cz) ** 2)
    bound = BOUND[int(row[0])] * row[1]
    if row[0] == SPHERE or gap - bound > margin or gap - row[1] < -margin:
        return gap - row[1]
    if rough:
        return gap - MIDDLE[int(row[0])] * row[1]
    scale = 1 / row[1]
    px, py, pz = into(row, -cx, -cy, -cz, scale)
    qx, qy, qz = into(row, dx, dy, dz, scale)
    low, high = max(t - bound, 0.0), t + bound
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a = distance(row[0], px + a * qx, py + a * qy, pz + a * qz)
    at_b = distance(row[0], px + b * qx, py + b * qy, pz + b * qz)
    for _ in range(8):
        if at_a < at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = distance(row[0], px + a * qx, py + a * qy, pz + a * qz)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = distance(row[0], px + b * qx, py + b * qy, pz + b * qz)
    return min(at_a, at_b) * row[1]


@compiled
def axes(camera, half_width):
    """Rows: the camera's right, up, forward, the first two scaled to half of such a view."""
    x, y, z = camera
    flat, length = math.sqrt(x * x + y * y), math.sqrt(x * x + y * y + z * z)
    right = (-y / flat, x / flat, 0.0)
    ahead = (-x / length, -y / length, -z / length)
    up = (right[1] * ahead[2], -right[0] * ahead[2], right[0] * ahead[1] - right[1] * ahead[0])
    out = np.empty((3, 3))
    for i in range(3):
        out[0, i], out[1, i], out[2, i] = right[i] * half_width, up[i] * HALF_HEIGHT, ahead[i]
    return out


@compiled
def ray(frame, a, b):
    """The direction of the point (a, b) in [-1, 1]^2 of the view: forward + a right + b up."""
    dx = frame[2, 0] + a * frame[0, 0] + b * frame[1, 0]
    dy = frame[2, 1] + a * frame[0, 1] + b * frame[1, 1]
    dz = frame[2, 2] + a * frame[0, 2] + b * frame[1, 2]
    return dx, dy, dz


@compiled
def on_view(frame, x, y, z, depth):
    """(a, b) of a point relative to the camera: `ray` inverted."""
    wide = frame[0, 0] ** 2 + frame[0, 1] ** 2 + frame[0, 2] ** 2
    high = frame[1, 0] ** 2 + frame[1, 1] ** 2 + frame[1, 2] ** 2
    a = (frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z) / (depth * wide)
    b = (frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z) / (depth * high)
    return a, b


@compiled
def widen(box, frame, x, y, z, width, height):
    """Make a box (columns and rows, half open) hold a point's pixel; all, of one behind us."""
    depth = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z
    if depth < 0.1:
        box[0], box[1], box[2], box[3] = 0, width, 0, height
        return
    a, b = on_view(frame, x, y, z, depth)
    col, row = (a + 1) / 2 * width, (1 - b) / 2 * height
    box[0] = min(box[0], max(math.floor(col), 0))
    box[1] = max(box[1], min(math.floor(col) + 1, width))
    box[2] = min(box[2], max(math.floor(row), 0))
    box[3] = max(box[3], min(math.floor(row) + 1, height))


@compiled
def corner(row, camera, k):
    """Corner k of 8 of a box around an object, from the camera; a round shape's box faces it."""
    c, s = (row[4], row[5]) if row[0] == CUBE else (camera[1], -camera[0])
    scale = row[1] / math.sqrt(c * c + s * s)
    a = (2 * (k & 1) - 1) * scale
    b = (2 * (k >> 1 & 1) - 1) * scale
    h = 2 * row[1] * (k >> 2)
    return row[2] + c * a - s * b - camera[0], row[3] + s * a + c * b - camera[1], h - camera[2]


@compiled
def boxes(objects, camera, frame, width, height):
    """Per object the pixels it may touch: the screen box of the corners of its box."""
    out = np.empty((len(objects), 4), np.int64)
    for i in range(len(objects)):
        box = out[i]
        box[0], box[1], box[2], box[3] = width, 0, height, 0
        for k in range(8):
            x, y, z = corner(objects[i], camera, k)
            widen(box, frame, x, y, z, width, height)
    return out


@compiled
def inside(row, camera, frame):
    """Whether all of an object is inside the view."""
    for k in range(8):
        x, y, z = corner(row, camera, k)
        depth = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z
        a, b = on_view(frame, x, y, z, depth)
        if depth <= 0 or abs(a) > 1 or abs(b) > 1:
            return False
    return True


@compiled
def visible(objects, i, box, camera, frame, width, height, enough):
    """How many pixels' centres show object i, from the middle row outwards and up to `enough`.

    Shapes have no rounded rims here, as in the counts recorded with the reference renders."""
    left, right, top, bottom = box[i]
    shown, middle = 0, (top + bottom) // 2
    for k in range(2 * (bottom - top)):
        row = middle + (k // 2 if k % 2 else -1 - k // 2)
        if shown < enough and top <= row < bottom:
            for col in range(left, right):
                dx, dy, dz = ray(frame, (2 * col + 1) / width - 1, 1 - (2 * row + 1) / height)
                t = hit(objects[i], True, camera[0], camera[1], camera[2], dx, dy, dz)
                seen = t != FAR
                for j in range(len(objects)):
                    near = box[j, 0] <= col < box[j, 1] and box[j, 2] <= row < box[j, 3]
                    if seen and j != i and near:
                        other = hit(objects[j], True, camera[0], camera[1], camera[2], dx, dy, dz)
                        seen = other >= t
                shown += seen
    return shown
