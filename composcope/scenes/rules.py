"""How scenes are drawn: by the official generator's rules, as a function of (seed, index).

    |p_i - p_j| - r_i - r_j >= min_distance,   |(p_i - p_j) . d| not in (0, margin),
    pixels shown by i >= min_pixels

for all i != j and d the two directions of the ground, right and behind, of the scene's camera."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from composcope.chance import MASK, SCENE, stream, uniform
from composcope.compiled import compiled
from composcope.errors import InputError, check_name
from composcope.scenes.geometry import SPHERE, axes, boxes, inside, ray, visible
from composcope.scenes.scene import COLORS, MATERIALS, RIG, SHAPES, SIZES, VIEWS, Object, Scene

# the image of each view in which min_pixels counts
PIXELS = {"full": (320, 240), "square": (240, 240)}
MOST = 100  # objects a scene may be asked to have
REACH = 7.0  # given places must lie on the flat of the ground, this near to the origin
# whole scenes that are tried before the rules are said to be impossible: about a second
ATTEMPTS = 30000
TABLES = {"shapes": SHAPES, "sizes": SIZES, "materials": MATERIALS, "colors": COLORS}
LOOK = 10  # attempts that looking for hidden objects counts for
FITS, CROWDED, NO_GROUND = 0, 1, 2  # what became of a scene


@dataclass(frozen=True)
class Rules:
    """What scenes may look like; all but the number of objects is as in the official generator."""

    objects: tuple[int, int] = (1, 3)  # fewest and most, each number as likely
    shapes: tuple[str, ...] = SHAPES
    sizes: tuple[str, ...] = tuple(SIZES)
    materials: tuple[str, ...] = MATERIALS
    colors: tuple[str, ...] = tuple(COLORS)
    camera_jitter: float = 0.5  # uniform on each axis; 0 is a fixed camera
    lamp_jitter: float = 1.0
    spread: float = 3.0  # centres are uniform in [-spread, spread]^2
    min_distance: float = 0.25
    margin: float = 0.4
    min_pixels: int = 200
    tries: int = 50  # places tried for an object before the whole scene is drawn again
    view: str = "full"  # of the official frame; in a `square` one all objects are wholly inside

    def __post_init__(self) -> None:
        if np.shape(self.objects) != (2,) or not all(is_whole(count) for count in self.objects):
            given = repr(self.objects)
            raise InputError(f"objects are a range, fewest and most, such as (1, 3), not {given}")
        low, high = self.objects
        if not 0 <= low <= high <= MOST:
            raise InputError(f"objects are a range within 0-{MOST}, not {low}-{high}")
        for name, allowed in TABLES.items():
            if isinstance(getattr(self, name), str) or not isinstance(
                getattr(self, name), Sequence
            ):
                given = repr(getattr(self, name))
                raise InputError(f"{name} are a list, such as {tuple(allowed)[:1]}, not {given}")
            wrong = [value for value in getattr(self, name) if value not in allowed]
            if wrong or not getattr(self, name):
                given = wrong[0] if wrong else "none"
                raise InputError(f"{name} are some of {', '.join(allowed)}, not {given}")
        check_name("view", self.view, VIEWS)
        for field in fields(self)[5:-1]:
            value = getattr(self, field.name)
            if not isinstance(value, int | float | np.number) or not 0 <= value < math.inf:
                raise InputError(f"{field.name} is a number from 0 on, not {value}")
            if isinstance(value, np.generic):  # JSON knows Python's own numbers alone
                object.__setattr__(self, field.name, value.item())


def is_whole(count: object) -> bool:
    return isinstance(count, int | np.integer)


Places = Sequence[tuple[float, float]] | None


def sample(seed: int, index: int, rules: Rules, places: Places = None) -> Scene:
    """Scene `index` of `seed`, the same whatever else is drawn.

    places: an object is put at each (u, v). They are exempt from the margins and from `spread`.
        Sizes and shapes are drawn until all else is met; where that never happens, until no two
        objects overlap; where even that is impossible, InputError."""
    return draw(seed, index, 1, rules, places)[0]


def draw(seed: int, start: int, count: int, rules: Rules, places: Places = None) -> list[Scene]:
    """Scenes start .. start + count - 1 of `seed`."""
    if not isinstance(rules, Rules):
        raise InputError(f"rules are such as Rules(objects=(1, 3)), not {rules!r}")
    if not is_whole(seed) or not is_whole(start):
        raise InputError(f"a seed and an index are whole numbers, not {seed!r} and {start!r}")
    try:
        where = np.array(() if places is None else places, float).reshape(-1, 2)
    except (TypeError, ValueError):
        raise InputError(f"places are a list of (u, v), not {places!r}") from None
    if not ((where >= 0) & (where <= 1)).all():
        raise InputError(
            f"the places {where.tolist()} are not all in [0, 1]^2, fractions of the view's width "
            "and height"
        )
    most = rules.objects[1] if places is None else len(where)
    counts = np.zeros(count, np.int64)
    rows = np.zeros((count, most, 10))  # as the renderer has them, see geometry
    looks = np.zeros((count, most, 5))  # shape, size, material, colour as indices; rotation
    rig = np.zeros((count, 4, 3))  # the camera and the key, fill and back lamp
    first = np.uint64(int(seed) & MASK), np.uint64(int(start) & MASK)
    numbers = (*rules.objects, rules.tries, rules.min_pixels, places is not None)
    lengths = rules.camera_jitter, rules.lamp_jitter, rules.spread, rules.min_distance, rules.margin
    view = VIEWS[rules.view], *PIXELS[rules.view], rules.view == "square"
    given = numbers, tuple(map(float, lengths)), view, choices(rules), where
    failed, why = fill(*first, *given, counts, rows, looks, rig)
    if why != FITS:
        raise InputError(impossible(why, start + failed, int(counts[failed]), rules, places))

    def scene(i: int) -> Scene:
        objects = map(object_of, looks[i, : counts[i]].tolist(), rows[i, :, 2:4].tolist())
        camera, key, fill, back = (tuple(position) for position in rig[i].tolist())
        return Scene(tuple(objects), camera, key, fill, back, rules.view)

    return [scene(i) for i in range(count)]


def object_of(look: list[float], at: list[float]) -> Object:
    shape, size, material, color = (int(index) for index in look[:4])
    kind = SHAPES[shape], tuple(SIZES)[size], MATERIALS[material], tuple(COLORS)[color]
    return Object(*kind, x=at[0], y=at[1], rotation=look[4])


def impossible(why: int, index: int, count: int, rules: Rules, places: Places) -> str:
    if why == NO_GROUND:
        place = tuple(places[count])  # type: ignore[index]
        return f"no object can stand at the place {place}: it is not on the flat ground"
    if places is not None:
        found = f"no {len(places)} objects at the given places are free of overlap"
        return f"{found} in scene {index}: they are too close"
    lengths = f"distance {rules.min_distance}, margin {rules.margin}"
    asked = f"{lengths}, {rules.min_pixels} visible pixels"
    found = f"no scene of {count} objects was found to meet the rules ({asked})"
    return f"{found}: ask for fewer or loosen them"


def choices(rules: Rules) -> tuple[np.ndarray, ...]:
    """The shapes, sizes, materials and colours to choose from, as indices in their tables."""
    return tuple(
        np.array([list(table).index(one) for one in getattr(rules, name)])
        for name, table in TABLES.items()
    )


RADII = np.array(list(SIZES.values()))
SHRINK = np.array([1 / math.sqrt(2), 1.0, 1.0])  # a cube's half side, in SHAPES' order
RGB = np.array(list(COLORS.values())) / 255


@compiled
def fill(seed, start, numbers, bounds, view, choice, places, counts, rows, looks, rig):
    """Draw scenes into the arrays; (index, why) of the first that cannot be."""
    fewest, most, tries, min_pixels, given = numbers
    camera_jitter, lamp_jitter, spread, min_distance, margin = bounds
    for i in range(len(counts)):
        key = stream(seed, start + np.uint64(i), SCENE)
        counts[i] = len(places) if given else fewest + int(uniform(key, 0) * (most - fewest + 1))
        for k in range(4):
            jitter = lamp_jitter if k else camera_jitter
            for axis in range(3):
                rig[i, k, axis] = RIG[k, axis] + jitter * (2 * uniform(key, 1 + 3 * k + axis) - 1)
        n, why, attempt = 13, CROWDED, 0
        while attempt < ATTEMPTS:
            relaxed = given and attempt >= ATTEMPTS // 2
            limits = spread, 0.0 if relaxed else min_distance, 0.0 if given else margin
            n, why, failed = attempted(
                key, n, counts[i], tries, limits, view, choice, places, rows[i], looks[i], rig[i, 0]
            )
            attempt += LOOK if why == FITS else 1
            shown = rows[i, : counts[i]]
            if why == FITS and not relaxed and hidden(shown, rig[i, 0], view, min_pixels):
                why = CROWDED
            if why == NO_GROUND:
                counts[i] = failed
            if why != CROWDED:
                break
        if why != FITS:
            return i, why
    return 0, FITS


@compiled
def attempted(key, n, count, tries, limits, view, choice, places, rows, looks, camera):
    """One attempt at a scene's objects: the next random number, what became of it, at which."""
    shapes, sizes, materials, colors = choice
    spread, min_distance, margin = limits
    half_width, _, _, bounded = view
    frame = axes(camera, half_width)
    ball = np.zeros(4)  # a row of geometry: the sphere that holds the object at any rotation
    ball[0] = SPHERE
    for i in range(count):
        why = CROWDED
        size = sizes[int(uniform(key, n) * len(sizes))]
        for _ in range(tries):
            shape = shapes[int(uniform(key, n + 1) * len(shapes))]
            if len(places):  # what may vary is the size, else it stays and the place varies
                size = sizes[int(uniform(key, n) * len(sizes))]
                x, y = ground_point(places[i], RADII[size] * SHRINK[shape], camera, frame)
                if not x * x + y * y < REACH * REACH:
                    return n, NO_GROUND, i
            else:
                x = spread * (2 * uniform(key, n + 2) - 1)
                y = spread * (2 * uniform(key, n + 3) - 1)
            n += 4
            ball[1], ball[2], ball[3] = RADII[size], x, y
            seen = len(places) > 0 or not bounded or inside(ball, camera, frame)
            if seen and free(rows[:i], x, y, RADII[size], frame[2], min_distance, margin):
                why = FITS
                break
        if why == CROWDED:
            return n, CROWDED, i
        material = materials[int(uniform(key, n) * len(materials))]
        color = colors[int(uniform(key, n + 1) * len(colors))]
        turn = 360 * uniform(key, n + 2)
        rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = shape, RADII[size] * SHRINK[shape], x, y
        rows[i, 4], rows[i, 5], rows[i, 6] = math.cos(turn), math.sin(turn), material
        rows[i, 7:10] = RGB[color]
        looks[i, 0], looks[i, 1], looks[i, 2] = shape, size, material
        looks[i, 3], looks[i, 4] = color, turn
        n += 3
    return n, FITS, count


@compiled
def free(rows, x, y, radius, ahead, min_distance, margin):
    """Whether an object may stand at (x, y); a new cube counts uncut, as officially it does."""
    flat = math.sqrt(ahead[0] ** 2 + ahead[1] ** 2)
    for i in range(len(rows)):
        dx, dy = x - rows[i, 2], y - rows[i, 3]
        if math.sqrt(dx * dx + dy * dy) - radius - rows[i, 1] < min_distance:
            return False
        behind = abs(dx * ahead[0] + dy * ahead[1]) / flat
        right = abs(dx * ahead[1] - dy * ahead[0]) / flat
        if 0 < behind < margin or 0 < right < margin:
            return False
    return True


@compiled
def hidden(rows, camera, view, min_pixels):
    """Whether some object shows fewer than min_pixels."""
    half_width, width, height, _ = view
    frame = axes(camera, half_width)
    box = boxes(rows, camera, frame, width, height)
    for i in range(len(rows)):
        if visible(rows, i, box, camera, frame, width, height, min_pixels) < min_pixels:
            return True
    return False


@compiled
def ground_point(place, height, camera, frame):
    """`project` inverted: where the point of this height is that appears at (u, v), or infinity."""
    a, b = 2 * place[0] - 1, 1 - 2 * place[1]
    dx, dy, dz = ray(frame, a, b)
    if dz >= 0:
        return math.inf, math.inf
    t = (height - camera[2]) / dz
    return camera[0] + t * dx, camera[1] + t * dy
