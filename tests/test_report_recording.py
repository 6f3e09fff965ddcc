"""The recording of the report: sliders over sprites, in one fragment that needs nothing else."""

import base64
import io
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from composcope.report.recording import LARGEST, coloured, recording
from composcope.results.samples import Record, Samples

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def drawn(side=16, count=2, numbers=(0, 1, 3)):
    """Flat pictures whose grey says which K and which image they are."""
    shown = [(K, i) for K in numbers for i in range(count)]
    grey = [np.full((side, side, 3), 10 + 40 * K + 20 * i, np.uint8) for K, i in shown]
    return samples(np.stack(grey), [[(0.25, 0.5)] * K for K, _ in shown])


def samples(images, places):
    record = Record(places, [[True] * len(some) for some in places], places)
    return Samples({}, images, record, images[:0], np.zeros(0))


def looked(levels=3, side=16):
    """One pixel is looked at, another one at each level; the square around it is 3 or 5 wide."""
    gradients = np.zeros((levels, 2, side, side))
    for level in range(levels):
        gradients[level, 0, 4, 3 + level] = 1
        gradients[level, 1, 9, 7] = 1
    pictures = [np.full((side, side, 3), 50 * level, np.uint8) for level in range(levels)]
    return {
        "sigmas": np.geomspace(80, 0.1, levels),
        "pictures": np.stack(pictures),
        "pixels": np.array([(4, 4), (9, 9)]),
        "gradients": gradients,
        "influences": np.ones((levels, 2, side, side)),
        "places": np.array([(0.25, 0.5), (0.5, 0.5)]),
    }


def both():
    return recording({"exp1": drawn()}, {"exp1": looked()})


def sprites(fragment):
    found = re.findall(r"data-(?:sprite|heat)='data:image/webp;base64,([^']*)'", fragment)
    return [np.array(Image.open(io.BytesIO(base64.b64decode(one)))) for one in found]


def test_a_sprite_has_a_tile_for_every_position():
    first, pictures, heat = sprites(both())
    assert first.shape == (3 * 16, 2 * 16, 3)
    for row, K in enumerate((0, 1, 3)):
        for column in range(2):
            middle = first[row * 16 + 8, column * 16 + 8]
            assert np.abs(middle.astype(int) - (10 + 40 * K + 20 * column)).max() <= 3
    assert pictures.shape == (16, 3 * 16, 3) and heat.shape == (3 * 16, 2 * 16, 4)
    for level in range(3):
        row, column = np.unravel_index(
            heat[level * 16 : level * 16 + 16, :16, 3].argmax(), (16, 16)
        )
        assert (row, column) == (4, 3 + level)


def test_a_map_is_clear_where_nothing_is_looked_at():
    made = coloured(np.array([[0.0, 1.0], [0.25, 0.0]]))
    assert made[0, 0, 3] == made[1, 1, 3] == 0 and made[0, 1, 3] > made[1, 0, 3] > 0


def test_the_fragment_needs_nothing_and_keeps_its_size():
    noisy = np.random.default_rng(0).integers(0, 256, (26, 64, 64, 3), np.uint8)
    many = {str(i): samples(noisy, [[(0.5, 0.5)] * (K // 2) for K in range(26)]) for i in range(10)}
    fragment = recording(many, {})
    assert len(fragment.encode()) <= LARGEST
    assert not re.search(r"(?:src|href)=|url\(http|@import|fetch\(", fragment)
    assert recording({}, {}) == ""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium")
def test_the_sliders_move_the_pictures(tmp_path):
    from playwright.sync_api import sync_playwright

    file = tmp_path / "page.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{both()}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800})
        said = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(file.as_uri())
        tile = page.locator("figure[data-kind=length] i").first
        slider = page.get_by_label("How many places are asked for")
        assert page.locator("figure[data-kind=length] output").inner_text() == "3 places"
        slider.fill("1")
        assert tile.locator("circle").count() == 3  # a ring drawn twice, and a dot
        assert page.locator(".rec-words").first.inner_text() == "1.0 of 1 filled"
        shown = np.array(Image.open(io.BytesIO(tile.screenshot())).convert("RGB"))
        assert np.abs(shown[5, 5].astype(int) - 50).max() <= 4  # K = 1, image 0
        page.get_by_label("Noise level").fill("2")
        page.get_by_role("button", name="pixel 2").click()
        assert (
            page.locator("figure[data-kind=look] .rec-words").inner_text() == "looks 5 pixels wide"
        )
        square = page.locator("figure[data-kind=look] rect").last
        assert float(square.get_attribute("width")) == pytest.approx(100 * 5 / 16)
        page.locator(".rec-large").click(position={"x": 60, "y": 60})  # the nearer pixel
        assert (
            page.locator("figure[data-kind=look] .rec-words").inner_text() == "looks 3 pixels wide"
        )
        assert not said
        browser.close()
