"""A scene is a handful of objects on the ground, a camera and three lamps, seen in places (u, v).

(u, v) = pinhole(centre), fractions of the view's width and height, whatever the image's size"""

import math
from dataclasses import dataclass

import numpy as np

from composcope.errors import check_name

SHAPES = ("cube", "sphere", "cylinder")
SIZES = {"large": 0.7, "small": 0.35}
MATERIALS = ("rubber", "metal")
# sRGB bytes of the official generator's properties.json, in the order of the paper's colour
# conditioner (section E.1).
COLORS = {
    "blue": (42, 75, 215),
    "brown": (129, 74, 25),
    "cyan": (41, 208, 208),
    "gray": (87, 87, 87),
    "green": (29, 105, 20),
    "purple": (129, 38, 192),
    "red": (173, 35, 35),
    "yellow": (255, 238, 51),
}
TABLES = {"shape": SHAPES, "size": SIZES, "material": MATERIALS, "color": COLORS}
CAMERA = (7.4811, -6.5076, 5.3437)
LAMPS = {
    "Key": (6.4467, -2.9052, 4.2584),
    "Fill": (-4.6711, -4.0136, 3.0112),
    "Back": (-1.1685, 2.6460, 5.8157),
}
RIG = np.array([CAMERA, *LAMPS.values()])
HALF_WIDTH = 16 / 35  # tan of half the horizontal field of view: a 35 mm lens on a 32 mm sensor
HALF_HEIGHT = HALF_WIDTH * 3 / 4  # the official images are 4:3
# What of the official 4:3 frame an image shows: all of it, or its centre square. The number is the
# tan of half the horizontal angle seen; all views have the same height. A square image of the full
# view is squeezed.
VIEWS = {"full": HALF_WIDTH, "square": HALF_HEIGHT}


Point = tuple[float, float, float]


@dataclass(frozen=True)
class Object:
    """One object resting on the ground at (x, y); `rotation`: degrees, used as radians."""

    shape: str
    size: str
    material: str
    color: str
    x: float
    y: float
    rotation: float = 0.0

    @property
    def radius(self) -> float:
        """Half the height: the height of the centre; a cube's half side is size / sqrt(2)."""
        return SIZES[self.size] / math.sqrt(2) if self.shape == "cube" else SIZES[self.size]


@dataclass(frozen=True)
class Scene:
    """Objects, the positions of the camera (it looks at the origin, +z up) and lamps, the view."""

    objects: tuple[Object, ...] = ()
    camera: Point = CAMERA
    key: Point = LAMPS["Key"]
    fill: Point = LAMPS["Fill"]
    back: Point = LAMPS["Back"]
    view: str = "full"

    def __post_init__(self) -> None:
        check_name("view", self.view, VIEWS)

    @property
    def places(self) -> tuple[tuple[float, float], ...]:
        """The (u, v) of each object's centre: fractions of the view's width and height."""
        centres = ((o.x, o.y, o.radius) for o in self.objects)
        return tuple(project(self.camera, centre, self.view)[:2] for centre in centres)


@dataclass(frozen=True)
class Seen:
    """What a picture is known to show, however taken: objects and the (u, v) of their centres."""

    objects: tuple[Object, ...]
    places: tuple[tuple[float, float], ...]


def camera_axes(camera: Point) -> np.ndarray:
    """Rows: right, up, forward of a camera that looks at the origin with +z up."""
    x, y, z = camera
    flat, length = math.hypot(x, y), math.sqrt(x * x + y * y + z * z)
    up = (-x * z / flat / length, -y * z / flat / length, flat / length)
    return np.array([(-y / flat, x / flat, 0.0), up, (-x / length, -y / length, -z / length)])


def project(camera: Point, point: Point, view: str = "full") -> Point:
    """(u, v, depth) of a point: fractions of the view, and the distance along its direction."""
    right, up, depth = (camera_axes(camera) @ np.subtract(point, camera)).tolist()
    return 0.5 + right / depth / VIEWS[view] / 2, 0.5 - up / depth / HALF_HEIGHT / 2, depth
