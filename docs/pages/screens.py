"""Screenshots of the report's first screen, which README shows.

    python -m docs.pages

takes them after the pages. Every file carries the fingerprint of the rows that it shows, so that a
test can tell when it is out of date.
"""

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from composcope.files import whole
from composcope.report.material import Material
from composcope.report.page import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCREENS = {"report.png": (1280, 800), "report-phone.png": (390, 844)}  # width, height
MARK = "rows"  # under which a screenshot keeps the fingerprint


def chromium() -> str | None:
    """The browser of this machine, if it has one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@contextmanager
def opened() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        arguments = ["--no-sandbox"]
        browser = play.chromium.launch(executable_path=chromium(), args=arguments, timeout=0)
        yield browser
        browser.close()


def take(material: Material, folder: Path, mark: str) -> None:
    """The first screen of the report of this material, a file for each size of screen."""
    with TemporaryDirectory() as made, opened() as browser:
        page = write_page(Path(made), material)
        for name, (width, height) in SCREENS.items():
            tab = browser.new_page(viewport={"width": width, "height": height})
            tab.set_default_timeout(0)
            tab.goto(page.as_uri())
            keep(tab.screenshot(), folder / name, mark)
            tab.close()


def keep(png: bytes, path: Path, mark: str) -> None:
    about = PngInfo()
    about.add_text(MARK, mark)
    with whole(path) as part:
        Image.open(io.BytesIO(png)).save(part, format="PNG", optimize=True, pnginfo=about)


def mark_of(path: Path) -> str | None:
    """The fingerprint of the rows that a screenshot shows."""
    with Image.open(path) as picture:
        return picture.info.get(MARK)
