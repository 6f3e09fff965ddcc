"""Light on the ground, on rubber and on metal, in linear RGB.

Area lamps of power P send out P / pi along their axis, the sun is a wide disc, and what the lamps do not reach directly
is a bounce off the ground. A surface of albedo a with normal n then shows

    L = a / pi * sum over lamps of E (n . l) visible + a * bounce

The constants below the line were fitted to Blender renders of CLEVR scenes; the ones above are facts of its scene file.
"""

import math

import numpy as np

from composcope.scenes.geometry import BOUND, FAR, clearance, compiled, hit, normal

POWER = np.array([78.54, 23.56, 39.27])  # watts: Key, Fill, Back
LAMP_HALF = np.array([0.25, 0.25, 0.5])  # half the side of each square lamp
LAMP_COLOR = np.array([[1, 0.932, 0.817], [0.762, 0.818, 1], [1, 1, 1]])
SUN = (0.4145, -0.1946, 0.8890)  # unit direction to the sun
SUN_POWER = 0.45  # watts a square metre
ALBEDO = 0.8  # of the ground

# --- fitted to renders ---
GAIN = np.array([0.97, 1.035, 1.03])  # per lamp: penumbra and rounding of the lamp's facts
SUN_SPREAD = 0.15  # tangent of the sun's angular radius
BOUNCE = 0.0124  # radiance on the flat ground from the backdrop and the ground itself
GLOW = 0.13  # light from the ground that reaches an object from below
HAZE = 0.03  # ... and from all around
MIRROR = 0.6  # share of metal's sharp layer; the rest is the rough one
ROUGH = 0.2  # GGX alpha of metal's rough layer
SHARP = 0.012  # GGX alpha of metal's sharp layer, with the lamps' own width
COAT = 0.04  # rubber's coat at normal incidence
COAT_ROUGH = 0.25  # its GGX alpha


@compiled
def shade_light(objects, skip, x, y, z, dx, dy, dz, spread, reach):
    """The share of a lamp of angular radius `spread` seen from a point along d: 1 in the open, 0 in full shadow."""
    light = 1.0
    for i in range(len(objects)):
        if i == skip:
            continue
        row = objects[i]
        size = row[1]
        ahead = (row[2] - x) * dx + (row[3] - y) * dy + (size - z) * dz
        if ahead + BOUND[int(row[0])] * size <= 0 or ahead - size > reach:
            continue
        margin = spread * max(ahead, 0.1 * size)
        gap, _ = clearance(row, x, y, z, dx, dy, dz, margin)
        cover = min(max(0.5 - 0.5 * gap / margin, 0.0), 1.0)
        cover = cover * cover * (3 - 2 * cover) * min(1.0, (size / margin) ** 2)
        light *= 1 - cover
    return light


@compiled
def diffuse(objects, skip, lamps, x, y, z, nx, ny, nz):
    """Irradiance / pi from lamps and sun at a point with normal n, shadows included: r, g, b."""
    r = g = b = 0.0
    cos = nx * SUN[0] + ny * SUN[1] + nz * SUN[2]
    if cos > 0:
        sun = SUN_POWER / math.pi * cos * shade_light(objects, skip, x, y, z, SUN[0], SUN[1], SUN[2], SUN_SPREAD, FAR)
        r, g, b = sun, sun, sun
    for k in range(3):
        lx, ly, lz = lamps[k, 0], lamps[k, 1], lamps[k, 2]
        wx, wy, wz = lx - x, ly - y, lz - z
        cos = wx * nx + wy * ny + wz * nz
        aim = wx * lx + wy * ly + wz * lz
        if cos <= 0 or aim <= 0:
            continue
        d2 = wx * wx + wy * wy + wz * wz
        scale = 1 / math.sqrt(d2)
        aim *= scale / math.sqrt(lx * lx + ly * ly + lz * lz)
        spread = 1.13 * LAMP_HALF[k] * scale
        seen = shade_light(objects, skip, x, y, z, wx * scale, wy * scale, wz * scale, spread, 1 / scale)
        power = GAIN[k] * POWER[k] / math.pi**2 * aim * cos * scale / d2 * seen
        r += power * LAMP_COLOR[k, 0]
        g += power * LAMP_COLOR[k, 1]
        b += power * LAMP_COLOR[k, 2]
    return r, g, b


@compiled
def backdrop(x, y):
    """Radiance the far, upcurving sheet adds to what a flat ground would show at (x, y)."""
    s = -0.754 * x + 0.656 * y
    t = 0.656 * x + 0.754 * y
    rise = 1 / (1 + math.exp(-(s - 9 - 0.3 * t) / 2.5))
    return BOUNCE + 0.03 * rise


@compiled
def ground(objects, lamps, x, y):
    """Radiance of the ground at (x, y)."""
    r, g, b = diffuse(objects, -1, lamps, x, y, 0.0, 0.0, 0.0, 1.0)
    add = backdrop(x, y)
    return ALBEDO * r + add, ALBEDO * g + add, ALBEDO * b + add


@compiled
def glint(lamps, x, y, z, nx, ny, nz, vx, vy, vz, alpha):
    """Lamps and sun in a GGX gloss of this alpha: r, g, b (v points to the viewer; no masking, no Fresnel)."""
    r = g = b = 0.0
    nv = max(nx * vx + ny * vy + nz * vz, 0.05)
    for k in range(4):
        if k < 3:
            wx, wy, wz = lamps[k, 0] - x, lamps[k, 1] - y, lamps[k, 2] - z
            d2 = wx * wx + wy * wy + wz * wz
            scale = 1 / math.sqrt(d2)
            wx, wy, wz = wx * scale, wy * scale, wz * scale
            aim = wx * lamps[k, 0] + wy * lamps[k, 1] + wz * lamps[k, 2]
            aim /= math.sqrt(lamps[k, 0] ** 2 + lamps[k, 1] ** 2 + lamps[k, 2] ** 2)
            power, width = POWER[k] / math.pi * max(aim, 0.0) / d2, LAMP_HALF[k] * scale * 0.6
        else:
            wx, wy, wz = SUN
            power, width = SUN_POWER, SUN_SPREAD * 0.6
        nl = nx * wx + ny * wy + nz * wz
        if nl <= 0:
            continue
        hx, hy, hz = wx + vx, wy + vy, wz + vz
        nh2 = (nx * hx + ny * hy + nz * hz) ** 2 / (hx * hx + hy * hy + hz * hz)
        a2 = alpha * alpha + width * width / 4
        bottom = nh2 * (a2 - 1) + 1
        power *= a2 / (math.pi * bottom * bottom) / (4 * nv)
        r += power * (LAMP_COLOR[k, 0] if k < 3 else 1.0)
        g += power * (LAMP_COLOR[k, 1] if k < 3 else 1.0)
        b += power * (LAMP_COLOR[k, 2] if k < 3 else 1.0)
    return r, g, b


@compiled
def rubber(objects, i, lamps, x, y, z, nx, ny, nz, vx, vy, vz):
    """Radiance of a rubber object: diffuse in its colour under a weak coat."""
    row = objects[i]
    r, g, b = diffuse(objects, i, lamps, x, y, z, nx, ny, nz)
    fill = HAZE + GLOW * (1 - nz) / 2
    cr, cg, cb = glint(lamps, x, y, z, nx, ny, nz, vx, vy, vz, COAT_ROUGH)
    nv = max(nx * vx + ny * vy + nz * vz, 0.0)
    coat = COAT + (1 - COAT) * (1 - nv) ** 5 * 0.5
    edge = coat * 0.12
    return (
        row[7] * (r + fill) + coat * cr + edge,
        row[8] * (g + fill) + coat * cg + edge,
        row[9] * (b + fill) + coat * cb + edge,
    )


@compiled
def seen_by(objects, skip, lamps, x, y, z, dx, dy, dz):
    """Radiance that reaches a point along a mirrored ray: another object, the ground, the backdrop or the black sky."""
    best, who = FAR, -1
    for i in range(len(objects)):
        if i != skip:
            row = objects[i]
            bound = BOUND[int(row[0])] * row[1]
            cx, cy, cz = row[2] - x, row[3] - y, row[1] - z
            ahead = cx * dx + cy * dy + cz * dz
            if ahead > -bound and cx * cx + cy * cy + cz * cz - ahead * ahead < bound * bound:
                t = hit(row, False, x, y, z, dx, dy, dz)
                if t < best:
                    best, who = t, i
    if who >= 0:
        px, py, pz = x + best * dx, y + best * dy, z + best * dz
        nx, ny, nz = normal(objects[who], px, py, pz)
        row = objects[who]
        if row[6] == 0:
            return rubber(objects, who, lamps, px, py, pz, nx, ny, nz, -dx, -dy, -dz)
        up = nz - 2 * nz * (nx * dx + ny * dy + nz * dz)  # a mirror in a mirror: ground below, black above
        gray = 0.14 if dz - 2 * nz * (nx * dx + ny * dy + nz * dz) < 0.1 or up < 0 else 0.02
        return row[7] * gray, row[8] * gray, row[9] * gray
    if dz < -1e-3:
        t = -z / dz
        px, py = x + t * dx, y + t * dy
        if px * px + py * py < 900:
            return ground(objects, lamps, px, py)
    toward = -0.754 * dx + 0.656 * dy
    gray = 0.14 * min(max((toward - 0.2) * 4, 0.0), 1.0) * min(max((0.8 - dz) * 4, 0.0), 1.0)
    return gray, gray, gray


@compiled
def metal(objects, i, lamps, x, y, z, nx, ny, nz, vx, vy, vz):
    """Radiance of a metal object: a sharp and a rough mirror, both in its colour."""
    row = objects[i]
    nv = nx * vx + ny * vy + nz * vz
    rx, ry, rz = 2 * nv * nx - vx, 2 * nv * ny - vy, 2 * nv * nz - vz
    r, g, b = seen_by(objects, i, lamps, x, y, z, rx, ry, rz)
    sr, sg, sb = glint(lamps, x, y, z, nx, ny, nz, vx, vy, vz, SHARP)
    qr = qg = qb = 0.0
    for k in range(3):  # the rough lobe: three rays around the mirrored one
        ex, ey, ez = 0.3 * (k == 0), 0.3 * (k == 1), 0.3 * (k == 2)
        sign = 1.0 if rz >= 0 else -1.0
        ax, ay, az = rx + ex * sign, ry + ey * sign, rz + ez * sign
        if ax * nx + ay * ny + az * nz <= 0:
            ax, ay, az = rx, ry, rz
        scale = 1 / math.sqrt(ax * ax + ay * ay + az * az)
        ar, ag, ab = seen_by(objects, i, lamps, x, y, z, ax * scale, ay * scale, az * scale)
        qr, qg, qb = qr + ar / 3, qg + ag / 3, qb + ab / 3
    tr, tg, tb = glint(lamps, x, y, z, nx, ny, nz, vx, vy, vz, ROUGH)
    return (
        row[7] * (MIRROR * (r + sr) + (1 - MIRROR) * (qr + tr)),
        row[8] * (MIRROR * (g + sg) + (1 - MIRROR) * (qg + tg)),
        row[9] * (MIRROR * (b + sb) + (1 - MIRROR) * (qb + tb)),
    )
