"""The explorer's page in a real browser: each thing a user does there, by clicks and typing,
checked by what it shows.

The browser is the system's Chromium (Debian's package `chromium`); without one these tests are
skipped."""

import base64
import io
import json
import re
import shutil
from contextlib import contextmanager
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
from explorer_served import WAIT, served
from PIL import Image

from composcope.diffusion.sample import noise_levels
from composcope.evaluation import detect
from composcope.features.words import prompt_words, without
from composcope.report.sections import SECTIONS
from composcope.runs.model import SHIPPED
from composcope.scenes.condition import PAPER_LOCATIONS

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium is installed: apt-get install chromium"
)
SIGHTS = [(1280, "light"), (390, "dark")]
QUICK = "#steps=4&columns=exp1;exp2"
MINE = "mine,lr=0.01;50%"  # a folder, named as sweeps name theirs
DRAWN = "body[data-state=drawn]"
LOOKED = "body[data-state=looked]"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "report").mkdir()
    (folder / "report" / "index.html").write_text("<h2 id=compose>Does it compose?</h2>")
    shutil.copytree(SHIPPED / "exp1", folder / MINE)
    with served(folder, ["exp1", "exp2", "color", "text_control", str(folder / MINE)]) as running:
        yield running
    assert "Traceback" not in running.said


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture(params=SIGHTS, ids=lambda sight: f"{sight[0]}-{sight[1]}")
def page(request, browser, server):
    with page_at(browser, server, *request.param) as one:
        yield one


@pytest.fixture
def once(browser, server):
    """For what does not depend on how wide or how dark the page is."""
    with page_at(browser, server, 1280, "light") as one:
        yield one


@contextmanager
def page_at(browser, server, width, scheme):
    """A page at a width and in a scheme; its scripts may say nothing on the console."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        permissions=["clipboard-read", "clipboard-write"],
    )
    one = context.new_page()
    one.set_default_timeout(1000 * WAIT)
    said = []
    one.on("console", lambda message: said.append(message.text))
    one.on("pageerror", lambda error: said.append(str(error)))
    one.address = server.address
    one.said = said
    yield one
    assert not said
    wide = one.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= width, "the page is wider than the screen"
    context.close()


def opened(page, state=QUICK):
    page.goto(f"{page.address}/{state}")
    page.wait_for_selector(LOOKED if "pixel=" in state else DRAWN)
    return page


def address_of(page):
    """As the page knows it: the browser tells us of it a little later."""
    return page.evaluate("() => location.href")


def state_of(page):
    said = parse_qs(urlsplit(address_of(page)).fragment)
    return {name: values[0] for name, values in said.items()}


def places_of(page):
    return [
        tuple(map(float, text.split(","))) for text in state_of(page)["places"].split(";") if text
    ]


def at(page, selector, u, v):
    """The point of the screen at (u, v) of an element."""
    page.locator(selector).first.scroll_into_view_if_needed()
    box = page.locator(selector).first.bounding_box()
    return box["x"] + u * box["width"], box["y"] + v * box["height"]


def drawn_by(page, column):
    """The picture that a column shows, as pixels."""
    source = page.locator(".picture img").nth(column).get_attribute("src")
    return np.array(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))


def verdicts(page):
    return page.locator(".verdict").all_inner_texts()


def rings(page, column):
    found = page.locator(".picture").nth(column).locator("circle.ring")
    return [
        tuple(float(one.get_attribute(name)) / 100 for name in ("cx", "cy")) for one in found.all()
    ]


# ---------------------------------------------------------------------------------------------
# 1. Ask.


def test_ask_by_clicks_drags_and_buttons(page):
    opened(page, QUICK + "&places=")
    page.mouse.click(*at(page, "#ground", 0.3, 0.6))
    page.wait_for_selector(DRAWN)
    page.mouse.click(*at(page, "#ground", 0.7, 0.5))
    page.wait_for_selector(DRAWN)
    np.testing.assert_allclose(places_of(page), [(0.3, 0.6), (0.7, 0.5)], atol=0.01)
    assert page.locator("#ground .place").count() == 2
    page.mouse.move(*at(page, "#ground", 0.7, 0.5))
    page.mouse.down()
    page.mouse.move(*at(page, "#ground", 0.5, 0.4), steps=4)
    page.mouse.up()
    np.testing.assert_allclose(places_of(page), [(0.3, 0.6), (0.5, 0.4)], atol=0.01)
    page.mouse.click(*at(page, "#ground", 0.3, 0.6))  # on a place: removes it
    np.testing.assert_allclose(places_of(page), [(0.5, 0.4)], atol=0.01)
    paper = page.get_by_role("group", name="The paper’s first places")
    assert paper.get_by_role("button").all_inner_texts() == [str(K) for K in range(13)]
    assert paper.locator("[aria-pressed=true]").count() == 0  # a place of one's own
    paper.get_by_role("button", name="12").click()
    assert paper.locator("[aria-pressed=true]").inner_text() == "12"
    assert places_of(page) == list(PAPER_LOCATIONS)

    def refused() -> bool:
        page.mouse.click(*at(page, "#ground", 0.9, 0.9))
        return "12 places are the most" in page.inner_text("#message")

    # The drawing that began before may still speak between a click and the look at what it says.
    assert any(refused() for _ in range(100))
    assert len(places_of(page)) == 12
    page.get_by_role("button", name="Random").click()
    assert len(places_of(page)) == 12 and places_of(page) != list(PAPER_LOCATIONS)
    page.get_by_role("button", name="Clear").click()
    page.wait_for_selector(DRAWN)
    assert "places" not in state_of(page)  # none are asked for
    assert all(text.split("\n")[-1].startswith("asked 0,") for text in verdicts(page))


def test_ask_by_a_drag_while_the_page_is_drawn_anew(once):
    """As it is while the denoising plays, or a picture comes."""
    page = opened(once, QUICK + "&places=0.3,0.6")
    page.mouse.move(*at(page, "#ground", 0.3, 0.6))
    page.mouse.down()
    page.mouse.move(*at(page, "#ground", 0.5, 0.4), steps=4)
    page.evaluate("() => document.getElementById('level').dispatchEvent(new Event('input'))")
    page.mouse.up()
    np.testing.assert_allclose(places_of(page), [(0.5, 0.4)], atol=0.01)


def test_ask_with_the_keyboard_alone(once):
    page = opened(once, QUICK + "&places=")
    page.locator("#ground").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    np.testing.assert_allclose(places_of(page), [(0.6, 0.55)], atol=0.001)
    assert page.locator("#ground").get_attribute("aria-description") == "Asked: 1 at 0.6, 0.55."
    page.wait_for_selector(DRAWN)  # what is told of the drawing comes before what is told of keys
    page.keyboard.press("Shift+ArrowUp")
    assert page.inner_text("#message") == "The cross is at 0.6, 0.54, on place 1."
    page.keyboard.press("Delete")
    assert "places" not in state_of(page)
    page.keyboard.press("Enter")
    page.wait_for_selector(DRAWN)
    page.locator(".picture").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(LOOKED)
    pixel = state_of(page)["pixel"]
    page.keyboard.press("ArrowLeft")
    assert state_of(page)["pixel"] != pixel
    page.wait_for_selector(LOOKED)
    page.keyboard.press("Escape")
    assert "pixel" not in state_of(page)


def focused(page):
    script = "() => document.activeElement.className + ' of ' + document.activeElement.closest('.card')?.ariaLabel"
    return page.evaluate(script)


def test_the_focus_is_not_lost_with_what_had_it(once):
    page = opened(once, "#steps=2&columns=exp1;color;exp2&places=0.3,0.6&names=red&pixel=0.5,0.5")
    page.get_by_role("button", name="Done").nth(1).focus()
    page.keyboard.press("Enter")
    assert focused(page) == "picture of color, as it was trained"
    page.locator("#add").focus()
    page.keyboard.press("Enter")  # the fourth: there can be no more
    assert focused(page).startswith("model of mine")
    page.get_by_role("button", name="Remove this column").nth(1).focus()
    page.keyboard.press("Enter")
    assert focused(page) == "model of exp2, as it was trained"
    page.wait_for_selector(DRAWN)


def test_the_first_link_leads_to_the_pictures_and_changes_nothing(once):
    page = opened(once, QUICK + "&places=0.3,0.6&seed=7")
    before = address_of(page)
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.className") == "picture"
    assert address_of(page) == before and places_of(page) == [(0.3, 0.6)]


def test_ask_for_colours_and_in_words(once):
    page = opened(once, "#steps=3&columns=color&names=red")
    page.locator(".chip", has_text="blue").click()
    page.wait_for_selector(DRAWN)
    assert state_of(page)["names"] == "red,blue"
    assert verdicts(page)[0].split("\n")[-1].startswith("asked 2,")
    page.get_by_label("Model").select_option("text_control")
    page.wait_for_selector(DRAWN)
    page.get_by_label("Sentence").fill("a red cube on the left")
    page.wait_for_selector(DRAWN)
    assert page.locator("#words .chip").all_inner_texts() == ["red", "cube", "left"]
    with_red = drawn_by(page, 0)
    page.locator("#words .chip", has_text="red").click()
    page.wait_for_selector(DRAWN)
    assert state_of(page)["off"] == "0" and not np.array_equal(drawn_by(page, 0), with_red)
    page.locator(".picture").click()
    page.wait_for_selector(LOOKED)
    assert page.locator(".bars .name").all_inner_texts() == ["cube", "left"]


@pytest.mark.parametrize("off", [(), (0,), (1, 3)])
def test_ask_in_words_that_are_those_of_the_library(once, off):
    sentence = 'a RED cube\'s, it is "on" 3 left-right'
    page = opened(once, f"#steps=2&columns=text_control&sentence={quote(sentence)}")
    assert page.locator("#words .chip").all_inner_texts() == [
        str(word) for word in prompt_words(sentence)
    ]
    for number in off:
        page.locator("#words .chip").nth(number).click()
    page.wait_for_selector(DRAWN)
    said = json.loads(saved(page, "json"))["columns"][0]["sentence"]
    assert said == without(sentence, [prompt_words(sentence)[number] for number in off])


def test_ask_in_one_kind_leaves_the_other_alone(once):
    """Places and colours side by side: the second place has nothing to do with the second colour."""
    page = opened(once, "#steps=2&columns=exp1;color&places=0.6,0.6;0.3,0.3&names=red,blue")
    page.locator("#clear").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "clear"
    page.get_by_role("button", name="2", exact=True).click()
    page.wait_for_selector(DRAWN)
    page.locator(".picture").first.click()
    page.wait_for_selector(LOOKED)
    second = page.locator(".card").nth(1)
    second.locator(".bars .name").first.hover()
    second.locator("[data-over=influence]").wait_for()
    assert page.locator(".card").first.locator("[data-over=gradient]").count() == 1
    page.get_by_label("Switch condition 1 off").nth(1).click()
    page.mouse.move(0, 0)
    second.locator("[data-over=difference]").wait_for()
    assert page.locator(".card").first.locator("[data-over=gradient]").count() == 1
    assert state_of(page)["without"] == "names0"


# ---------------------------------------------------------------------------------------------
# 2. Compare.


def test_compare_columns_from_the_same_noise(page):
    opened(page, "#steps=3")
    chosen = [select.input_value() for select in page.locator(".model").all()]
    helps = [select.input_value() for select in page.locator(".help").all()]
    assert chosen == ["exp1", "exp2", "exp2"] and helps == ["none", "none", "local"]
    assert page.get_by_label("Radius of local conditions").nth(2).is_visible()
    page.get_by_role("button", name="Add a column").click()
    page.get_by_label("Model").nth(3).select_option("exp1")
    page.wait_for_selector(DRAWN)
    assert np.array_equal(drawn_by(page, 0), drawn_by(page, 3))  # one model, one noise
    assert page.get_by_role("button", name="Add a column").is_disabled()
    page.get_by_label("Intervention").nth(3).select_option("composed")
    page.wait_for_selector(DRAWN)
    assert not np.array_equal(drawn_by(page, 0), drawn_by(page, 3))
    before = drawn_by(page, 0)
    page.get_by_label("Seed").fill("7")
    page.get_by_label("Seed").press("Enter")
    page.wait_for_selector(DRAWN)
    assert state_of(page)["seed"] == "7" and not np.array_equal(drawn_by(page, 0), before)
    page.get_by_role("button", name="Other noise").click()
    assert state_of(page)["seed"] != "7"
    page.get_by_role("button", name="Remove this column").first.click()
    page.wait_for_selector(DRAWN)
    assert page.locator(".card").count() == 3
    assert page.locator(".model").first.input_value() == "exp2"


# ---------------------------------------------------------------------------------------------
# 3. Watch.


def test_watch_the_rings_the_verdict_and_the_way_back(page):
    opened(page, "#steps=6&columns=exp1&places=0.65,0.65;0.35,0.35")
    image = drawn_by(page, 0)
    found = detect(image[None])[0]
    assert found, "the model drew nothing to put a ring around"
    np.testing.assert_allclose(sorted(rings(page, 0)), sorted((f.x, f.y) for f in found), atol=1e-3)
    words = verdicts(page)[0].split("\n")[-1]
    asked, there, extra = map(
        int, re.fullmatch(r"asked (\d+), (\d+) there, (\d+) extra", words).groups()
    )
    assert asked == 2 and there + extra == len(found)
    assert page.locator("circle.ring.extra").count() - 1 == extra  # one more in the legend
    slider = page.get_by_label("Noise level")
    slider.fill("0")
    assert page.inner_text("#sigma") == "σ = 80"
    assert not np.array_equal(drawn_by(page, 0), image) and not rings(page, 0)
    slider.press("End")
    assert np.array_equal(drawn_by(page, 0), image) and "level" not in state_of(page)


def test_watch_every_step_arrives_and_a_change_cancels(once):
    page = once
    cancelled = []
    page.on("requestfailed", lambda request: cancelled.append(request.url))
    page.goto(f"{page.address}/#steps=64&columns=exp2,local,0.2;exp1")
    progress = page.locator("[role=progressbar]").first
    progress.wait_for()
    page.wait_for_selector(".picture img[src]")
    seen = int(progress.get_attribute("aria-valuenow"))
    assert 0 < seen < 65
    page.get_by_label("Steps").fill("3")
    page.get_by_label("Steps").press("Enter")
    page.wait_for_selector(DRAWN)
    assert any(url.endswith("/api/sample") for url in cancelled)
    assert progress.get_attribute("aria-valuenow") == "4" and not progress.is_visible()


def test_watch_before_looking(once):
    """A pixel that is clicked while a picture comes out of the noise is looked at afterwards."""
    page = once
    page.goto(f"{page.address}/#steps=24&columns=exp1&places=")
    page.wait_for_selector(".picture img[src]")
    page.locator(".picture").click()
    assert page.locator("body").get_attribute("data-state") == "drawing"
    assert page.get_by_label("Noise level").is_disabled()
    page.wait_for_selector(LOOKED)
    assert page.locator(".picture").get_attribute("data-over") == "gradient"


def test_watch_it_played_from_noise_to_the_picture(once):
    page = opened(once, "#steps=5&columns=exp1&pixel=0.5,0.5")
    page.evaluate("""() => {
      const sigma = document.getElementById("sigma");
      window.played = [];
      new MutationObserver(() => played.push(sigma.textContent)).observe(sigma, { childList: true });
    }""")
    page.get_by_role("button", name="Play the denoising").click()
    page.wait_for_function("() => played.at(-1) === 'σ = 0'")
    shown = [float(text.removeprefix("σ = ")) for text in page.evaluate("() => played")]
    np.testing.assert_allclose(np.unique(shown)[::-1], noise_levels(5), rtol=0.05)
    page.wait_for_selector(LOOKED)  # at the noise level where it ended
    assert "move the noise level back" in page.inner_text("#message")
    assert page.locator(".picture").get_attribute("data-over") == "gradient"


def test_watch_what_happens_when_the_server_is_gone(once):
    page = opened(once)
    page.route("**/api/sample", lambda route: route.abort())
    page.get_by_role("button", name="Other noise").click()
    page.wait_for_selector("body[data-state=failed]")
    assert page.inner_text("#message").startswith("The server does not answer.")
    page.unroute("**/api/sample")
    page.get_by_role("button", name="Other noise").click()
    page.wait_for_selector(DRAWN)
    assert all("ERR_FAILED" in text for text in page.said)
    page.said.clear()


def test_a_field_that_is_left_empty_stays_as_it_was(once):
    page = opened(once)
    for name, value in (("Steps", "4"), ("Seed", "0")):
        page.get_by_label(name).fill("")
        page.get_by_label(name).press("Tab")
        assert page.get_by_label(name).input_value() == value
    page.get_by_label("Steps").fill("1000")
    page.get_by_label("Steps").press("Tab")
    assert state_of(page)["steps"] == "64"


# ---------------------------------------------------------------------------------------------
# 4. Look.


def heat_of(page, column):
    """How much a map covers the picture, pixel by pixel."""
    canvas = page.locator(".picture canvas").nth(column)
    script = """canvas => {
      const { width, height } = canvas;
      const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
      return [height, width, [...data]];
    }"""
    height, width, data = canvas.evaluate(script)
    return np.array(data).reshape(height, width, 4)


def square_of(page, column):
    rect = page.locator(".picture").nth(column).locator("rect.square")
    return [float(rect.get_attribute(name)) / 100 for name in ("x", "y", "width", "height")]


def test_look_at_what_a_pixel_looks_at(page):
    opened(page, QUICK + "&places=0.65,0.65;0.35,0.35")
    page.get_by_label("Noise level").fill("1")
    page.mouse.click(*at(page, ".picture", 0.65, 0.65))
    page.wait_for_selector(LOOKED)
    for column in range(2):
        brightness = heat_of(page, column)[..., :3].sum(-1) * heat_of(page, column)[..., 3]
        row, across = np.unravel_index(brightness.argmax(), brightness.shape)
        x, y, width, height = square_of(page, column)
        side = len(brightness)
        assert x <= (across + 0.5) / side <= x + width and y <= (row + 0.5) / side <= y + height
        assert page.locator(".card").nth(column).locator(".bars li").count() == 2
        said = page.locator(".card").nth(column).locator(".share").inner_text()
        assert re.search(r"Conditional locality \d\.\d\d \(chance 0\.\d\d\)", said)
    assert "move the noise level back" not in page.inner_text("#message")
    for button in page.locator(".look button").all():  # as large as a finger needs
        assert min(button.bounding_box()[side] for side in ("width", "height")) >= 24
    gradient = heat_of(page, 0)
    page.locator(".card").first.locator(".bars .name").nth(1).hover()
    page.wait_for_selector(".picture[data-over=influence]")
    assert not np.array_equal(heat_of(page, 0), gradient)
    page.mouse.move(0, 0)
    page.wait_for_selector(".picture[data-over=gradient]")
    page.get_by_label("Switch condition 1 off").first.click()
    page.mouse.move(0, 0)
    page.wait_for_selector(".picture[data-over=difference]")
    difference = heat_of(page, 0)
    assert (difference[..., :3] != 128).any() and (difference[..., 3] == 255).all()
    before = square_of_text(page)
    page.get_by_label("Noise level").fill("3")
    page.wait_for_selector(LOOKED)
    assert square_of_text(page) != before
    page.get_by_role("button", name="Done").first.click()
    assert page.locator(".look:visible").count() == 0 and "pixel" not in state_of(page)


def test_look_with_the_keyboard_alone(once):
    """A condition that is switched off shows its difference at once, and the button keeps the
    focus."""
    page = opened(once, QUICK + "&places=0.65,0.65;0.35,0.35&pixel=0.5,0.5")
    off = page.get_by_label("Switch condition 1 off").first
    off.focus()
    page.wait_for_selector(".picture[data-over=influence]")
    for pressed, over in (("true", "difference"), ("false", "influence")):
        page.keyboard.press("Enter")
        assert off.get_attribute("aria-pressed") == pressed
        assert off.evaluate("button => button === document.activeElement")
        page.wait_for_selector(f".picture[data-over={over}]")


def square_of_text(page):
    return page.locator(".look p").first.inner_text()


# ---------------------------------------------------------------------------------------------
# 5. Understand.


def test_understand_by_the_strip_the_words_and_the_report(page):
    opened(page, QUICK + "&places=" + ";".join(f"{u},{v}" for u, v in PAPER_LOCATIONS[:6]))
    card = page.locator(".card").first
    strip = card.locator(".strip")
    assert strip.locator(".curve").count() == 1 and "the paper’s K_max: 7" in strip.text_content()
    assert "K = 6" in strip.text_content() and strip.locator(".here").count() == 1
    for K in (0, 12):
        page.get_by_role("button", name=str(K), exact=True).click()
        filled, now = page.evaluate(f"""() => ["filled", "K = {K}"].map((words) => {{
          const parts = [...document.querySelector(".strip").children];
          const box = parts.find((one) => one.textContent === words).getBBox();
          return [box.x, box.x + box.width];
        }})""")
        assert filled[1] < now[0] and now[1] < 260  # side by side, and within the drawing
    page.get_by_role("button", name="6", exact=True).click()
    page.wait_for_selector(DRAWN)
    words = card.locator(".words").inner_text()
    assert words.startswith("Trained on 1 to 3 objects, every one of them labelled. 6 is more than")
    with page.context.expect_page() as opening:
        card.get_by_role("link", name="Read more in the report").click()
    report = opening.value
    assert report.url.endswith("/report#compose")
    assert {"compose", "forced", "elsewhere"} <= {section.name for section in SECTIONS}
    assert report.locator("#compose").inner_text() == "Does it compose?"


# ---------------------------------------------------------------------------------------------
# 6. Take away.


def test_take_away_a_link_that_shows_the_same_pictures(page):
    opened(page, "#steps=4&columns=exp1;exp2,local,0.25&seed=5")
    page.mouse.click(*at(page, "#ground", 0.2, 0.8))
    page.wait_for_selector(DRAWN)
    page.get_by_label("Noise level").fill("2")
    page.mouse.click(*at(page, ".picture", 0.4, 0.4))
    page.wait_for_selector(LOOKED)
    page.get_by_role("button", name="Copy link").click()
    link = page.evaluate("() => navigator.clipboard.readText()")
    assert link == address_of(page)
    other = page.context.new_page()
    other.goto(link)
    other.wait_for_selector(LOOKED)
    for column in range(2):
        assert np.array_equal(drawn_by(page, column), drawn_by(other, column))
        assert np.array_equal(heat_of(page, column), heat_of(other, column))
    other.close()


def test_take_away_a_link_to_a_run_whatever_its_name(once):
    page = opened(once, "#steps=2&columns=exp1")
    page.get_by_label("Model").select_option(MINE)
    page.wait_for_selector(DRAWN)
    page.reload()
    page.wait_for_selector(DRAWN)
    assert page.get_by_label("Model").input_value() == MINE
    opened(once, "#steps=2&columns=50%25")  # no name, and no code of one


def test_take_away_says_so_where_the_browser_does_not_let_it(once):
    """A page from another machine without encryption has no clipboard."""
    page = opened(once, "#steps=2&columns=exp1&places=")
    page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_selector("#message.wrong")
    assert "copy by hand" in page.inner_text("#message")


def saved(page, name):
    with page.expect_download() as started:
        page.locator(f"#take-{name}").click()
    return started.value.path().read_bytes()


def test_take_away_pictures_and_numbers(page):
    opened(page)
    sheet = Image.open(io.BytesIO(saved(page, "png")))
    side = drawn_by(page, 0).shape[0]
    zoom = 256 // side
    shown = np.array(sheet.convert("RGB"))[
        46 : 46 + zoom * side : zoom, 16 : 16 + zoom * side : zoom
    ]
    # But for the marks.
    assert np.mean(np.abs(shown.astype(int) - drawn_by(page, 0)).max(-1) <= 2) > 0.5
    film = Image.open(io.BytesIO(saved(page, "gif")))
    assert film.format == "GIF" and film.n_frames == 5
    film.seek(4)
    frame = np.array(film.convert("RGB"))
    wanted = np.full_like(frame, 255)
    for column in range(2):
        left = 16 + column * (256 + 16)
        wanted[16 : 16 + zoom * side, left : left + zoom * side] = enlarged(
            drawn_by(page, column), zoom
        )
    twin = Image.fromarray(wanted).quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    assert away(frame, wanted) <= away(np.array(twin.convert("RGB")), wanted)
    numbers = json.loads(saved(page, "json"))
    assert numbers["address"] == address_of(page)
    assert [one["model"] for one in numbers["columns"]] == ["exp1", "exp2"]
    words = [text.split("\n")[-1] for text in verdicts(page)]
    assert [one["verdict"] for one in numbers["columns"]] == words


def enlarged(image, zoom):
    return image.repeat(zoom, 0).repeat(zoom, 1)


def away(image, wanted):
    return np.abs(image.astype(int) - wanted).mean()


def test_take_away_what_a_pixel_looks_at(once):
    """The sheet has the picture of the chosen noise level, and what lies over it."""
    page = opened(once, "#steps=4&columns=exp1&places=0.65,0.65&level=1&pixel=0.6,0.6")
    heat = heat_of(page, 0)
    share = heat[..., 3:] / 255
    wanted = share * heat[..., :3] + (1 - share) * drawn_by(page, 0)
    zoom = 256 // len(wanted)
    shown = np.array(Image.open(io.BytesIO(saved(page, "png"))).convert("RGB"))
    shown = shown[46 : 46 + 256 : zoom, 16 : 16 + 256 : zoom]
    assert np.mean(np.abs(shown - wanted).max(-1) <= 3) > 0.9  # but for the marks
    assert np.mean(np.abs(shown - drawn_by(page, 0).astype(int)).max(-1) <= 3) < 0.9


def test_take_away_nothing_that_was_before_a_change(once):
    page = opened(once)
    page.evaluate("""() => {
      document.getElementById("clear").click();
      document.getElementById("take-png").click();
    }""")
    assert page.inner_text("#message") == "The pictures are not there yet."
    page.wait_for_selector(DRAWN)


def test_take_away_lines_of_python_that_draw_the_same(once):
    mine = quote(quote(MINE))
    state = f"#steps=3&seed=4&columns={mine};exp2,local,0.25;color;text_control&names=red,blue"
    page = opened(once, state)
    page.get_by_role("button", name="Python").click()
    code = page.locator("#code-text").inner_text()
    page.get_by_role("button", name="Copy", exact=True).click()
    page.wait_for_function(
        "() => document.getElementById('message').textContent.includes('copied')"
    )
    assert page.evaluate("() => navigator.clipboard.readText()").strip() == code.strip()
    made = {}
    exec(code, made)
    for column, image in enumerate(made["pictures"]):
        assert np.abs(image.astype(int) - drawn_by(page, column)).max() <= 1, code


# ---------------------------------------------------------------------------------------------
# Looks.


def test_pictures_are_enlarged_by_whole_multiples(page):
    opened(page)
    for image in page.locator(".picture img").all():
        own = image.evaluate("image => image.naturalWidth")
        wide = image.bounding_box()["width"]
        assert wide >= 2 * own and wide % own == 0
        assert image.evaluate("image => getComputedStyle(image).imageRendering") == "pixelated"


def test_words_stand_out_from_the_page(page):
    """The contrast that WCAG asks of text, 4.5 to 1, in either scheme."""
    opened(page)
    for selector in (".words", ".hint", ".verdict", "#message", "h2", "button"):
        script = """element => {
          let ground = element;
          const colour = () => getComputedStyle(ground).backgroundColor;
          while (colour() === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
          return [getComputedStyle(element).color, colour()];
        }"""
        ink, paper = page.locator(selector).first.evaluate(script)
        assert contrast(ink, paper) >= 4.5, (selector, ink, paper)


def contrast(*colours):
    lights = sorted(luminance(re.findall(r"[\d.]+", colour)[:3]) for colour in colours)
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(rgb):
    parts = np.array(rgb, float) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))
