"""`python -m composcope.explore.assets`: make what the page shows of scenes, from the functions
that make scenes.

The empty scene of each view, and sets of random places. They ship with the page, so that it opens
without compiling the renderer; a test makes them again."""

import json
from pathlib import Path

from PIL import Image

from composcope.files import write_png, write_text
from composcope.scenes import Scene, render
from composcope.scenes.condition import PAPER_LOCATIONS, LocationGrid
from composcope.scenes.scene import VIEWS

STATIC = Path(__file__).parent / "static"
SIDE = 320  # pixels of the empty scene
SETS = 24  # of random places


def ground_picture(view: str) -> Image.Image:
    """The empty scene, squeezed into a square as the pictures of the models are."""
    return Image.fromarray(render([Scene(view=view)], SIDE)[0])


def place_sets() -> dict[str, list]:
    """The paper's places in their order, and sets of as many random ones."""
    chosen = LocationGrid().ask(len(PAPER_LOCATIONS), SETS, way="random")
    random = [[[round(u, 3), round(v, 3)] for u, v in one] for one in chosen]
    return {"paper": [list(place) for place in PAPER_LOCATIONS], "random": random}


def main() -> None:
    for view in VIEWS:
        write_png(STATIC / f"ground-{view}.png", ground_picture(view))
    write_text(STATIC / "places.json", json.dumps(place_sets()) + "\n")
    print(STATIC)


if __name__ == "__main__":
    main()
