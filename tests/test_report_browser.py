"""The page in a real browser: nothing is cut, at any width, light or dark; the first screen holds
what it should."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from composcope.report.material import material
from composcope.report.page import page
from composcope.results.samples import Record, Samples
from composcope.runs.model import SHIPPED
from composcope.study.table import LOCAL

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
SCREENS = {390: 844, 1280: 800, 1920: 1080}

# Everything that sticks out of the screen to a side, and every table or figure wider than its
# place; what a reader can scroll to inside a figure's frame is not cut.
CUT = """() => {
  document.querySelectorAll('details').forEach(one => one.open = true);
  const screen = document.documentElement.clientWidth;
  const cut = [];
  for (const one of document.querySelectorAll('main *')) {
    if (one.ownerSVGElement || one.parentElement.closest('.scroll')) continue;
    const box = one.getBoundingClientRect();
    const outside = box.width && (box.right > screen + 1 || box.left < -1);
    const wider = one.clientWidth && one.scrollWidth > one.clientWidth + 1;
    const over = box.right > one.parentElement.getBoundingClientRect().right + 1;
    if (outside || over && one.matches('table') || wider && one.matches('table, figure, td, .one'))
      cut.push([one.tagName, one.className, box.right, one.textContent.slice(0, 60)]);
  }
  const tables = document.querySelectorAll('table').length;
  const figures = document.querySelectorAll('figure').length;
  return {cut, tables, figures, wide: document.documentElement.scrollWidth - screen};
}"""
REMEMBER = """() =>
  document.querySelectorAll('details').forEach(one => one.toggleAttribute('data-open', one.open))"""
AS_OPENED = """() => {
  document.querySelectorAll('dialog[open]').forEach(one => one.close());
  document.querySelectorAll('details').forEach(one => one.open = one.hasAttribute('data-open'));
  document.activeElement.blur();
  scrollTo(0, 0);
}"""
PIXELS = """() => [...document.querySelectorAll('.one img.pixels')].map(one =>
  [one.getBoundingClientRect().width / one.naturalWidth, getComputedStyle(one).imageRendering])"""


def samples_of(run, intervention=None):
    """64x64, as the models that ship; every image with a place that is missing."""
    images = np.random.default_rng(0).integers(0, 255, (4, 64, 64, 3), dtype=np.uint8)
    asked = [[(0.1 * (i + 1), 0.5) for i in range(K)] for K in (1, 3, 6, 9)]
    met = [[i > 0 for i in range(len(one))] for one in asked]
    record = Record(asked, met, asked, asked[2])
    about = {"run": run, "snapshot": "final", "intervention": intervention}
    about["radius"] = LOCAL.radius if intervention else None
    return Samples(about, images, record, images[:2], np.array([80.0, 0.0]))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = material(SHIPPED, [])
    models = (("exp1", None), ("exp2", None), ("exp2", LOCAL.name), ("exp2l", None))
    shown = [samples_of(*model) for model in models]
    text = page(replace(found, samples=shown), compare=["exp1", "exp2"])
    assert len(text.encode()) < 8e6
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=0)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def shown(browser, path):
    """The page in a tab of some width and scheme, as it is when it is opened. It is large: one tab
    for all the tests that look at it in this way."""
    tabs = {}

    def tab(width, scheme="light", **more):
        how = (width, scheme, *more.items())
        if how not in tabs:
            size = {"width": width, "height": SCREENS[width]}
            tabs[how] = browser.new_page(viewport=size, color_scheme=scheme, **more)
            tabs[how].set_default_timeout(0)
            tabs[how].goto(path.as_uri())
            tabs[how].evaluate(REMEMBER)
        tabs[how].evaluate(AS_OPENED)
        return tabs[how]

    return tab


@pytest.mark.parametrize("width", SCREENS)
def test_nothing_is_cut(shown, width):
    tab = shown(width)
    found = tab.evaluate(CUT)
    assert found["tables"] > 30 and found["figures"] > 40
    assert found["cut"][:5] == [] and found["wide"] == 0


def test_the_first_screen(shown):
    """At 1280 x 800 without scrolling: title, sentence, all of Figure 1 with its counts, three
    facts."""
    tab = shown(1280)
    for what, count in (
        ("h1", 1),
        (".lead", 1),
        (".one .shot", 16),
        (".one .shot figcaption", 16),
        (".facts li", 3),
    ):
        boxes = [
            one.bounding_box()
            for one in tab.locator(
                "main > " + what if what == "h1" else f".first {what}, main > {what}"
            ).all()
        ]
        assert len(boxes) == count, what
        assert all(
            box["y"] + box["height"] <= 800 and box["x"] + box["width"] <= 1280 for box in boxes
        ), what


@pytest.mark.parametrize("width", SCREENS)
def test_pictures_are_whole_multiples_of_their_pixels(shown, width):
    tab = shown(width)
    drawn = tab.evaluate(PIXELS)
    assert drawn and all(
        scale >= 1 and scale == int(scale) and how == "pixelated" for scale, how in drawn
    )


def test_letters_in_figures_are_readable_on_a_phone(shown):
    """Figures are drawn with letters of 8 or 9 points; a phone shows them at 0.8 of their size or
    more, and what is wider than the screen scrolls inside its frame."""
    tab = shown(390)
    scales = """() => [...document.querySelectorAll('.figures svg')].map(one =>
      one.getBoundingClientRect().width / parseFloat(one.style.getPropertyValue('--natural')))"""
    opened = "() => document.querySelectorAll('details').forEach(one => one.open = true)"
    tab.evaluate(opened)
    drawn = tab.evaluate(scales)
    assert len(drawn) > 30 and min(drawn) > 0.79


def test_pictures_enlarge_on_click_and_by_key(shown):
    tab = shown(1280)
    for picture in ("#compose .figures .zoom", ".one .zoom"):
        small = tab.locator(picture).first.locator("svg, img").first.bounding_box()["width"]
        tab.locator(picture).first.press("Enter")
        large = tab.locator("dialog[open] svg, dialog[open] img").first.bounding_box()["width"]
        assert large > 1.5 * small
        tab.keyboard.press("Escape")
        assert tab.locator("dialog[open]").count() == 0
    tab.locator(".one .zoom").first.click()
    assert tab.locator("dialog[open]").count() == 1


def test_the_denoising_of_three_models_moves(shown):
    """In whole multiples of their pixels; and not for readers who asked their system for none."""
    walks = """() => [...document.querySelectorAll('.walk')].map(one =>
      [one.getAnimations().length, one.getBoundingClientRect().width / 64])"""
    tab = shown(1280)
    assert tab.evaluate(walks) == [[1, 3]] * 3
    tab = shown(1280, reduced_motion="reduce")
    assert tab.evaluate(walks) == [[0, 3]] * 3


def test_in_the_dark_figures_are_light(shown, path):
    tab = shown(390, "dark")
    light = """() => {
      const body = getComputedStyle(document.body);
      return [body.backgroundColor, getComputedStyle(document.querySelector('#compose svg')).color];
    }"""
    ground, ink = (sum(map(int, color.strip("rgb()").split(","))) for color in tab.evaluate(light))
    assert ground < 150 and ink > 500  # of 765
    assert "#000000" not in path.read_text()[path.read_text().index("<svg") :]
