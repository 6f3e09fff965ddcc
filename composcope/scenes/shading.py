"""Light on the ground, on rubber and on metal, in linear RGB.

An area lamp of power P gives P / pi cos(emission) cos(incidence) / distance^2, the sun is a wide
disc, and what they do not reach directly is a bounce off the ground. A surface of albedo a with
normal n then shows

    L = a / pi * sum over lamps of E (n . l) seen + a * bounce

The constants above the line are facts of the CLEVR scene file; the ones below were fitted to
Blender's renders of it."""

import math

import numpy as np

from composcope.compiled import compiled
from composcope.scenes.geometry import BOUND, FAR, bend, clearance, hit, surface_normal

# Key, Fill, Back in watts, the sun in watts a square metre
POWER = np.array([78.54, 23.56, 39.27, 0.45])
HALF = np.array([0.25, 0.25, 0.5])  # half the side of the square lamps
COLOR = np.array([[1, 0.932, 0.817], [0.762, 0.818, 1], [1, 1, 1], [1, 1, 1]])
SUN = (0.4145, -0.1946, 0.8890)  # unit direction to the sun
ALBEDO = 0.8  # of the ground
LIGHTS = 4  # three lamps and the sun

# --- fitted to renders ---
SUN_SPREAD = 0.15  # tangent of the sun's angular radius
BEHIND = (-0.754, 0.656)  # the way the camera looks, along which the sheet rises
# What the far, upcurving sheet and its own bounce add to a flat ground lit by the lamps: sum of
# BACKDROP[a][b] p^a q^b, in perspective coordinates p = s / (s + 28), q = t / (s + 28) of the point
# s ahead and t to the right of the origin.
BACKDROP = (
    (0.0132, -0.01397, -0.03532, 0.17383, 0.58349),
    (0.04059, -0.07796, -0.34884, -0.27686),
    (0.12554, -0.10104, 0.44396),
    (0.09181, 0.62914),
    (-0.58814,),
)
WALL, WALL_TOP = 0.14, 0.065  # radiance of the backdrop at its foot and where it is steep
GLOW = 0.19  # light that reaches an object from the ground, on a face that looks down
BLEED = 0.08  # light an object throws back on the ground beside it, in its colour
BLEED_REACH = 3.0  # ... up to so many radii from its centre
GLOSS = 0.95  # what a rough mirror gives back of the light it gets
MIRROR = 0.6  # share of metal's sharp layer; the rest is the rough one
ROUGH = 0.2  # GGX alpha of metal's rough layer
SHARP = 0.012  # GGX alpha of metal's sharp layer
LOBE = 0.25  # how far the rough layer's rays stray from the mirrored one
MATTE = 0.945  # rubber's diffuse share
COAT = 0.005  # rubber's gloss under the lamps
COAT_ROUGH = 0.3  # its GGX alpha
EDGE = 0.067  # radiance that rubber's coat mirrors at grazing incidence
VEIL = 0.002  # ... and everywhere


@compiled
def lights_of(lamps):
    """Rows for Key, Fill, Back, sun: position or direction, axis, power / pi^2 or / pi, radius."""
    out = np.empty((LIGHTS, 8))
    for k in range(3):
        length = math.sqrt(lamps[k, 0] ** 2 + lamps[k, 1] ** 2 + lamps[k, 2] ** 2)
        for i in range(3):
            out[k, i], out[k, 3 + i] = lamps[k, i], lamps[k, i] / length
        out[k, 6], out[k, 7] = POWER[k] / math.pi**2, HALF[k] * 2 / math.sqrt(math.pi)
    out[3] = np.array([*SUN, *SUN, POWER[3] / math.pi, SUN_SPREAD])
    return out


@compiled
def beam(light, far, x, y, z):
    """Light at a point: way to the lamp, irradiance / pi facing it, angular radius, distance."""
    if far:
        return light[0], light[1], light[2], light[6], light[7], FAR
    wx, wy, wz = light[0] - x, light[1] - y, light[2] - z
    near = 1 / math.sqrt(wx * wx + wy * wy + wz * wz)
    aim = (wx * light[3] + wy * light[4] + wz * light[5]) * near
    power = light[6] * max(aim, 0.0) * near * near
    return wx * near, wy * near, wz * near, power, light[7] * near, 1 / near


@compiled
def cover(row, rough, blur, x, y, z, dx, dy, dz, spread, reach):
    """The share of a lamp's disc along d that the object hides, softened by `blur`, a pixel."""
    ahead = (row[2] - x) * dx + (row[3] - y) * dy + (row[1] - z) * dz
    if ahead <= -BOUND[int(row[0])] * row[1] or ahead - row[1] > reach:
        return 0.0
    ahead = max(ahead, 0.0)
    margin = spread * max(ahead, 0.1 * row[1]) + blur
    gap = clearance(row, rough, x, y, z, dx, dy, dz, ahead, margin)
    if gap >= margin:
        return 0.0
    part = min(0.5 - 0.5 * gap / margin, 1.0)
    return part * part * (3 - 2 * part) * min(1.0, (row[1] / margin) ** 2)


@compiled
def lit(objects, skip, lights, rough, x, y, z, nx, ny, nz):
    """Irradiance / pi at a point with normal n, less what objects but `skip` hide: r, g, b."""
    r = g = b = 0.0
    for k in range(LIGHTS):
        dx, dy, dz, power, spread, reach = beam(lights[k], k == 3, x, y, z)
        power *= nx * dx + ny * dy + nz * dz
        if power <= 0:
            continue
        for i in range(len(objects)):
            if i != skip:
                power *= 1 - cover(objects[i], rough, 0.0, x, y, z, dx, dy, dz, spread, reach)
        r, g, b = r + power * COLOR[k, 0], g + power * COLOR[k, 1], b + power * COLOR[k, 2]
    return r, g, b


@compiled
def backdrop(x, y):
    """What the ground at (x, y) shows beyond the direct light of lamps and sun."""
    s = min(max(BEHIND[0] * x + BEHIND[1] * y, -7.0), 60.0)
    t = BEHIND[1] * x - BEHIND[0] * y
    p, q = s / (s + 28), min(max(t / (s + 28), -0.33), 0.33)
    c, d, e, f, g = BACKDROP
    first = (((c[4] * q + c[3]) * q + c[2]) * q + c[1]) * q + c[0]
    second = ((d[3] * q + d[2]) * q + d[1]) * q + d[0]
    third = (e[2] * q + e[1]) * q + e[0]
    return (((g[0] * p + f[1] * q + f[0]) * p + third) * p + second) * p + first


@compiled
def bleed(row, x, y):
    """How much of its colour an object adds to the ground: a sphere's cos / distance^2, cut off."""
    d2 = ((row[2] - x) ** 2 + (row[3] - y) ** 2) / (row[1] * row[1]) + 1
    if d2 > BLEED_REACH**2:
        return 0.0
    return BLEED * (1 / (d2 * math.sqrt(d2)) - 1 / BLEED_REACH**3)


@compiled
def ground_radiance(lights, x, y, out):
    """Radiance of bare ground at (x[i], y[i]), into out [3, n]: loops that become vector code."""
    for i in range(len(x)):
        out[0, i] = out[1, i] = out[2, i] = backdrop(x[i], y[i])
    for k in range(LIGHTS):
        light, r, g, b = lights[k], COLOR[k, 0], COLOR[k, 1], COLOR[k, 2]
        for i in range(len(x)):
            _, _, dz, power, _, _ = beam(light, k == 3, x[i], y[i], 0.0)
            power *= ALBEDO * dz
            out[0, i] += power * r
            out[1, i] += power * g
            out[2, i] += power * b


@compiled
def darken(objects, lights, shadows, row, col, pixel, x, y):
    """What objects take from the ground at (x, y), less what they throw back on it: r, g, b."""
    r = g = b = 0.0
    for k in range(LIGHTS):
        hidden, power = 0.0, 0.0
        dx = dy = dz = spread = reach = 0.0
        for i in range(len(objects)):
            box = shadows[i, k]
            if box[0] <= col < box[1] and box[2] <= row < box[3]:
                if reach == 0:
                    dx, dy, dz, power, spread, reach = beam(lights[k], k == 3, x, y, 0.0)
                own = cover(objects[i], False, pixel, x, y, 0.0, dx, dy, dz, spread, reach)
                hidden += (1 - hidden) * own
        power *= hidden * ALBEDO * dz
        r, g, b = r + power * COLOR[k, 0], g + power * COLOR[k, 1], b + power * COLOR[k, 2]
    for i in range(len(objects)):
        share = bleed(objects[i], x, y)
        r, g, b = r - share * objects[i, 7], g - share * objects[i, 8], b - share * objects[i, 9]
    return r, g, b


@compiled
def glint(lights, x, y, z, nx, ny, nz, vx, vy, vz, alpha2):
    """Lamps and sun in a GGX gloss of this alpha squared, v to the viewer: r, g, b (no Fresnel)."""
    r = g = b = 0.0
    nv = max(nx * vx + ny * vy + nz * vz, 0.05)
    for k in range(LIGHTS):
        dx, dy, dz, power, spread, _ = beam(lights[k], k == 3, x, y, z)
        nl = nx * dx + ny * dy + nz * dz
        if nl <= 0:
            continue
        hx, hy, hz = dx + vx, dy + vy, dz + vz
        nh2 = (nx * hx + ny * hy + nz * hz) ** 2 / (hx * hx + hy * hy + hz * hz)
        a2 = alpha2 + spread * spread / 16  # the lamp's disc widens the lobe
        bottom = nh2 * (a2 - 1) + 1
        # D = a2 / (pi bottom^2), and beam's irradiance is over pi
        power *= a2 / (4 * nv * bottom * bottom)
        r, g, b = r + power * COLOR[k, 0], g + power * COLOR[k, 1], b + power * COLOR[k, 2]
    return r, g, b


@compiled
def rubber(objects, i, lights, rough, x, y, z, nx, ny, nz, vx, vy, vz):
    """Radiance of a rubber object: diffuse in its colour under a weak coat."""
    row = objects[i]
    r, g, b = lit(objects, i, lights, rough, x, y, z, nx, ny, nz)
    cr, cg, cb = glint(lights, x, y, z, nx, ny, nz, vx, vy, vz, COAT_ROUGH**2)
    below = GLOW * (1 - nz) / 2
    edge = VEIL + EDGE * (1 - max(nx * vx + ny * vy + nz * vz, 0.0)) ** 5
    return (
        row[7] * (MATTE * r + below) + COAT * cr + edge,
        row[8] * (MATTE * g + below) + COAT * cg + edge,
        row[9] * (MATTE * b + below) + COAT * cb + edge,
    )


@compiled
def mirrored(objects, skip, lights, x, y, z, dx, dy, dz):
    """Radiance along a mirrored ray: of another object, the ground, the backdrop, the black sky."""
    best, who = FAR, -1
    for i in range(len(objects)):
        row = objects[i]
        bound = BOUND[int(row[0])] * row[1]
        cx, cy, cz = row[2] - x, row[3] - y, row[1] - z
        ahead = cx * dx + cy * dy + cz * dz
        if (
            i != skip
            and ahead > -bound
            and cx * cx + cy * cy + cz * cz - ahead * ahead < bound * bound
        ):
            t = hit(row, False, x, y, z, dx, dy, dz)
            if t < best:
                best, who = t, i
    if who >= 0:
        px, py, pz = x + best * dx, y + best * dy, z + best * dz
        nx, ny, nz = surface_normal(objects[who], px, py, pz)
        row = objects[who]
        if row[6] == 0:
            return rubber(objects, who, lights, True, px, py, pz, nx, ny, nz, -dx, -dy, -dz)
        # a mirror in a mirror: ground below, black sky above
        up = dz - 2 * nz * (nx * dx + ny * dy + nz * dz)
        gray = WALL if up < 0.1 else 0.15 * WALL
        return row[7] * gray, row[8] * gray, row[9] * gray
    if dz < -0.03:
        t = -z / dz
        px, py = x + t * dx, y + t * dy
        r, g, b = lit(objects, -1, lights, True, px, py, 0.0, 0.0, 0.0, 1.0)
        add = backdrop(px, py)
        return ALBEDO * r + add, ALBEDO * g + add, ALBEDO * b + add
    toward = BEHIND[0] * dx + BEHIND[1] * dy
    wall = WALL + (WALL_TOP - WALL) * min(max(dz / 0.4, 0.0), 1.0)
    gray = wall * min(max((toward - 0.2) * 4, 0.0), 1.0) * min(max((0.8 - dz) * 4, 0.0), 1.0)
    return gray, gray, gray


@compiled
def metal(objects, i, lights, stray, blur, x, y, z, nx, ny, nz, vx, vy, vz):
    """Radiance of a metal object: a sharp and a rough mirror, both in its colour.

    The rough one looks along one ray of its lobe, the `stray`-th of four, so that a pixel's samples
    together cover it. `blur` is a sample's width, over which a curved mirror turns: it widens the
    sharp highlight."""
    row = objects[i]
    nv = nx * vx + ny * vy + nz * vz
    rx, ry, rz = 2 * nv * nx - vx, 2 * nv * ny - vy, 2 * nv * nz - vz
    r, g, b = mirrored(objects, i, lights, x, y, z, rx, ry, rz)
    turn = 0.3 * blur * bend(row, nx, ny, nz)
    sr, sg, sb = glint(lights, x, y, z, nx, ny, nz, vx, vy, vz, turn * turn + SHARP**2)
    tr, tg, tb = glint(lights, x, y, z, nx, ny, nz, vx, vy, vz, ROUGH**2)
    side, rise = LOBE * (1 - 2 * (stray & 1)), LOBE * (1 - (stray & 2))
    flat = 1 / math.sqrt(rx * rx + ry * ry + 1e-9)
    qx = rx - (side * ry + rise * rz * rx) * flat
    qy = ry + (side * rx - rise * rz * ry) * flat
    qz = rz + rise / flat
    if qx * nx + qy * ny + qz * nz > 0:
        scale = 1 / math.sqrt(qx * qx + qy * qy + qz * qz)
        qx, qy, qz = mirrored(objects, i, lights, x, y, z, qx * scale, qy * scale, qz * scale)
    else:
        qx, qy, qz = r, g, b
    return (
        GLOSS * row[7] * (MIRROR * (r + sr) + (1 - MIRROR) * (qx + tr)),
        GLOSS * row[8] * (MIRROR * (g + sg) + (1 - MIRROR) * (qy + tg)),
        GLOSS * row[9] * (MIRROR * (b + sb) + (1 - MIRROR) * (qz + tb)),
    )
