"""Scenes in the official CLEVR format; camera, lamps and view are fields more, and may be missing.

    camera = argmin over positions of sum_objects |project(3d_coords) - pixel_coords|^2

The positions are those from which a camera looks at the origin."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from composcope.errors import InputError
from composcope.files import read_json
from composcope.scenes.scene import (
    CAMERA,
    HALF_WIDTH,
    LAMPS,
    TABLES,
    VIEWS,
    Object,
    Point,
    Scene,
    camera_axes,
    project,
)

# what the official generator makes by default, and the published data set
IMAGES = (320, 240), (480, 320)
PIXELS = 1.5  # an estimated camera reprojects the recorded pixel_coords within this
EPSILON = 0.2  # differences along a direction up to this are no relation
Size = tuple[int, int]  # width and height of an image


def to_struct(scene: Scene, index: int, size: Size) -> dict[str, Any]:
    """A scene as the official JSON has it; pixel_coords are of an image of this size."""
    right, _, ahead = camera_axes(scene.camera)
    behind = np.array([ahead[0], ahead[1], 0.0]) / np.hypot(ahead[0], ahead[1])
    directions = {"right": right, "left": -right, "behind": behind, "front": -behind}
    coords = np.array([(o.x, o.y, o.radius) for o in scene.objects]).reshape(-1, 3)
    vertical = {"above": [0.0, 0.0, 1.0], "below": [0.0, 0.0, -1.0]}
    return {
        "split": "new",
        "image_index": index,
        "image_filename": image_filename(index),
        "objects": [object_struct(scene, o, size) for o in scene.objects],
        "relationships": {name: related(coords, along) for name, along in directions.items()},
        "directions": {name: along.tolist() for name, along in directions.items()} | vertical,
        "camera_location": list(scene.camera),
        "lights": {"Key": list(scene.key), "Fill": list(scene.fill), "Back": list(scene.back)},
        "view": scene.view,
    }


def image_filename(index: int) -> str:
    return f"CLEVR_new_{index:06d}.png"


def object_struct(scene: Scene, o: Object, size: Size) -> dict[str, Any]:
    u, v, depth = project(scene.camera, (o.x, o.y, o.radius), scene.view)
    look = {name: getattr(o, name) for name in (*TABLES, "rotation")}
    coords = {"3d_coords": [o.x, o.y, o.radius], "pixel_coords": [u * size[0], v * size[1], depth]}
    return look | coords


def related(coords: np.ndarray, direction: np.ndarray) -> list[list[int]]:
    """For each object, which others lie in a direction from it."""
    along = coords @ direction
    return [np.flatnonzero(along > own + EPSILON).tolist() for own in along]


def load_clevr(path: str | Path, view: str | None = None) -> list[Scene]:
    """The scenes of an official file, of a file with one scene, or of a folder of such files.

    view: what of the frame is to be seen, "full" or "square"; None: the recorded one, else "full".

    Where a file has no camera_location (the original CLEVR), the camera is estimated from
    pixel_coords, taken as those of a 320x240 or of a 480x320 image; if they are missing, or no
    camera reprojects them within 1.5 pixels, it is the base camera. Lamps that are not recorded are
    the base lamps."""
    scenes = [to_scene(struct, where) for struct, where in structs(path)]
    return scenes if view is None else [replace(scene, view=view) for scene in scenes]


def structs(path: str | Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Each scene's JSON object and how to speak of it in an error."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    # in a folder made by `composcope scenes`, beside what it was made from
    official = path / "CLEVR_scenes.json"
    files = [official if official.exists() else path]
    if path.is_dir() and not official.exists():
        files = sorted(path.glob("*.json"))
    if not files:
        raise InputError(f"{path} holds no scenes (.json files)")
    for file in files:
        content: Any = read_json(file, Any)
        scenes = content.get("scenes", [content]) if isinstance(content, dict) else None
        if not isinstance(scenes, list):
            raise InputError(f"{file}: not a scene, nor a file with a list of `scenes`")
        for i, struct in enumerate(scenes):
            where = f"{file}, scenes[{i}]" if "scenes" in content else str(file)
            if not isinstance(struct, dict):
                raise InputError(f"{where}: not a scene but {type(struct).__name__}")
            yield struct, where


def to_scene(struct: dict[str, Any], where: str) -> Scene:
    rows = struct.get("objects")
    if not isinstance(rows, list):
        raise InputError(f"{where}: the field `objects` is missing or not a list")
    objects = tuple(to_object(row, f"{where}, objects[{i}]") for i, row in enumerate(rows))
    lights = struct.get("lights", {})
    if not isinstance(lights, dict):
        raise InputError(f"{where}: the field `lights` is not an object of lamp positions")
    key, fill, back = (
        number_list(lights, name, f"{where}, lights", 3, LAMPS[name])
        for name in ("Key", "Fill", "Back")
    )
    if "camera_location" in struct:
        camera = number_list(struct, "camera_location", where, 3)
        if not any(camera[:2]):
            raise InputError(
                f"{where}: a camera_location right above the origin has no up in its image"
            )
    else:
        camera = estimated(objects, pixel_coords(rows, where))
    view = struct.get("view", "full")
    if view not in VIEWS:
        raise InputError(f"{where}: the view {view!r} is none of {', '.join(VIEWS)}")
    return Scene(objects, camera, key, fill, back, view)


def to_object(row: Any, where: str) -> Object:
    if not isinstance(row, dict):
        raise InputError(f"{where}: not an object but {type(row).__name__}")
    for field, table in TABLES.items():
        if field not in row:
            raise InputError(f"{where}: the field `{field}` is missing")
        if not isinstance(row[field], str) or row[field] not in table:
            raise InputError(f"{where}: the {field} {row[field]!r} is none of {', '.join(table)}")
    x, y, _ = number_list(row, "3d_coords", where, 3)
    rotation = number_list({"rotation": [row.get("rotation", 0.0)]}, "rotation", where, 1)[0]
    return Object(row["shape"], row["size"], row["material"], row["color"], x, y, rotation)


def number_list(
    row: dict, field: str, where: str, count: int, default: tuple | None = None
) -> tuple:
    """A field that is a list of finite numbers."""
    values = row.get(field, default)
    if values is None:
        raise InputError(f"{where}: the field `{field}` is missing")
    good = isinstance(values, (list, tuple)) and len(values) == count
    if not good or not all(type(v) in (int, float) and np.isfinite(v) for v in values):
        raise InputError(f"{where}: the field `{field}` is not a list of {count} numbers")
    return tuple(float(v) for v in values)


def pixel_coords(rows: list[dict], where: str) -> np.ndarray | None:
    """[object, 3]: column, row and depth of each, if all have them."""
    if not rows or any("pixel_coords" not in row for row in rows):
        return None
    objects = ((row, f"{where}, objects[{i}]") for i, row in enumerate(rows))
    return np.array([number_list(row, "pixel_coords", at, 3) for row, at in objects])


def estimated(objects: tuple[Object, ...], seen: np.ndarray | None) -> Point:
    """The camera that shows the objects where they were seen, or the base camera if none does."""
    if seen is None:
        return CAMERA
    points = np.array([(o.x, o.y, o.radius) for o in objects])
    found = [fit_camera(points, seen, size) for size in IMAGES]
    fits = [camera for camera, error in found if error <= PIXELS]
    # the jitter is small
    return min(fits, key=lambda camera: math.dist(camera, CAMERA), default=CAMERA)


def fit_camera(points: np.ndarray, seen: np.ndarray, size: Size) -> tuple[Point, float]:
    """(camera, error): Gauss-Newton from the base camera, pulled to it as hard as by rounding."""
    camera = np.array(CAMERA)
    for _ in range(10):
        off = residuals(camera, points, seen, size)
        moved = [residuals(camera + step, points, seen, size) for step in 1e-6 * np.eye(3)]
        slope = (np.stack(moved, 1) - off[:, None]) / 1e-6
        normal = slope.T @ slope + np.eye(3)
        step = np.linalg.solve(normal, slope.T @ off + camera - CAMERA)
        camera = camera - step
        if np.abs(step).max() < 1e-4:
            break
    error = float(np.abs(residuals(camera, points, seen, size).reshape(-1, 3)[:, :2]).max())
    x, y, z = camera.tolist()
    return (x, y, z), error if np.isfinite(error) else np.inf


def residuals(camera: np.ndarray, points: np.ndarray, seen: np.ndarray, size: Size) -> np.ndarray:
    """Pixels off, and depth off: at the origin a unit of length is about width / 11 pixels."""
    right, up, depth = camera_axes(tuple(camera)) @ (points - camera).T
    scale = size[0] / 2 / HALF_WIDTH  # pixels are square, so both axes have the same scale
    column, row = size[0] / 2 + scale * right / depth, size[1] / 2 - scale * up / depth
    shown = np.stack([column, row, depth * size[0] / 11], 1)
    return (shown - seen * (1, 1, size[0] / 11)).reshape(-1)
