"""The explorer over HTTP: how soon the first image is there, a whole picture, a gradient; eight
clients for five minutes."""

import json
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from composcope.diffusion.sample import draw
from composcope.runs import load
from composcope.scenes.condition import PAPER_LOCATIONS
from docs.pages.screens import opened

MODEL = "exp1"
PLACES = [list(place) for place in PAPER_LOCATIONS[:9]]
STEPS = 12
SOAK = 300.0  # seconds
CLIENTS = 8
DOCS = Path(__file__).parents[1] / "docs"
SHOTS = {  # name: (width, height, scale, state)
    "explorer": (1440, 1150, 1, "#level=5&pixel=0.65,0.65"),
    "explorer-phone": (390, 844, 2, "#columns=exp1;exp2"),
}


@contextmanager
def served() -> Iterator[tuple[httpx.Client, int]]:
    """A client of a server of its own, and the server's process id."""
    command = [sys.executable, "-m", "composcope", "explore", MODEL, "exp2", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(server.stdout.readline, "")  # type: ignore[union-attr]
        address = next(found for line in lines if (found := re.search(r"http://\S+", line))).group()
        with httpx.Client(base_url=address, timeout=120) as client:
            yield client, server.pid
    finally:
        server.terminate()
        server.communicate()


def streamed(client: httpx.Client, asked: dict) -> tuple[float, float]:
    """Seconds to the first line, and to the last."""
    begin = time.perf_counter()
    first = 0.0
    with client.stream("POST", "/api/sample", json=asked) as answer:
        for _ in answer.iter_lines():
            first = first or time.perf_counter() - begin
    return first, time.perf_counter() - begin


def timed(job: Callable[[], object]) -> float:
    begin = time.perf_counter()
    job()
    return time.perf_counter() - begin


def rows() -> list[tuple[str, str, str]]:
    model = load(MODEL)
    size = f"{model.resolution}x{model.resolution}"
    asked = {"model": MODEL, "conditions": PLACES, "steps": STEPS}
    columns = [
        {"model": "exp2", "conditions": PLACES, "intervention": how} for how in ("none", "local")
    ]
    first, whole, plain, look, apart, beside = ([] for _ in range(6))
    with served() as (client, pid):
        for seed in range(6):  # in turns, so that a busy moment hits them all
            times = streamed(client, {**asked, "seed": seed})
            first.append(times[0])
            whole.append(times[1])
            plain.append(timed(lambda s=seed: draw(model, [PLACES], seeds=[s], steps=STEPS)))
            pixel = {**asked, "seed": seed, "sigma": 5.0, "pixel": [model.resolution // 2] * 2}
            look.append(timed(lambda p=pixel: client.post("/api/look", json=p)))
            one, other = ({**column, "seed": seed} for column in columns)
            steps = {"steps": STEPS}
            beside.append(streamed(client, {**one, **steps, "beside": [other]})[1])
            apart.append(sum(streamed(client, {**each, **steps})[1] for each in (one, other)))
        soak = soaked(client, pid, SOAK)
    middle = [statistics.median(times[1:]) for times in (first, whole, plain, look, apart, beside)]
    ratio = f"{middle[1] / middle[2]:.2f}x draw in this process"
    return [
        (f"first image of the stream, {size}", f"{middle[0]:.2f} s", "0.3 s on two quiet cores"),
        (f"whole picture, {STEPS} steps, K = 9", f"{middle[1]:.2f} s; {ratio}", "1.5 s"),
        ("look: gradient, influences, left out", f"{middle[3]:.2f} s", "0.4 s"),
        ("two columns of one model", f"{middle[4] / middle[5]:.2f}x as fast in one request", ""),
        (f"{CLIENTS} clients for {SOAK:.0f} s", str(soak), "all answered, memory flat"),
    ]


@dataclass
class Soak:
    """What became of the requests, how long the page's own ones took, and the memory before and
    after."""

    answered: int = 0
    left: int = 0
    wrong: int = 0
    slowest: float = 0.0
    before: int = 0
    after: int = 0

    def __str__(self) -> str:
        memory = f"{self.before // 2**20} -> {self.after // 2**20} MB"
        said = f"{self.answered} answered, {self.left} left, {self.wrong} wrong"
        return f"{said}; {memory}; the page in {self.slowest:.2f} s at most"


def soaked(client: httpx.Client, pid: int, seconds: float) -> Soak:
    """Clients that ask, look, and go away half-way, while one reloads the page; memory from a fifth
    of the time on."""
    soak = Soak()
    end = time.monotonic() + seconds

    def ask(number: int) -> None:
        chance = random.Random(number)
        with httpx.Client(base_url=client.base_url, timeout=120) as own:
            while time.monotonic() < end:
                seed, K = chance.randrange(1000), chance.randrange(13)
                places = [list(place) for place in PAPER_LOCATIONS[:K]]
                help_ = chance.choice(("none", "local", "composed"))
                asked = {"model": "exp2", "conditions": places, "seed": seed, "intervention": help_}
                tell(soak, own, {**asked, "steps": 4}, chance)

    with ThreadPoolExecutor(CLIENTS) as pool:
        working = [pool.submit(ask, number) for number in range(CLIENTS)]
        while time.monotonic() < end:
            soak.slowest = max(soak.slowest, timed(lambda: client.get("/api/models")))
            if not soak.before and time.monotonic() > end - 0.8 * seconds:
                soak.before = memory(pid)
            time.sleep(1)
        for one in working:
            one.result()
    soak.after = memory(pid)
    return soak


def tell(soak: Soak, client: httpx.Client, asked: dict, chance: random.Random) -> None:
    """One request: a look, a picture to its end, or one that is left after a line."""
    kind = chance.choice(("look", "whole", "left"))
    if kind == "look":
        answer = client.post("/api/look", json={**asked, "sigma": 3.0, "pixel": [5, 5]})
        soak.answered += answer.status_code == 200
        soak.wrong += answer.status_code != 200
        return
    with client.stream("POST", "/api/sample", json=asked) as stream:
        lines = stream.iter_lines()
        if kind == "left":
            soak.left += "png" in json.loads(next(lines))
            return
        *_, last = lines
    soak.answered += "verdict" in json.loads(last)
    soak.wrong += "verdict" not in json.loads(last)


def memory(pid: int) -> int:
    """Resident bytes of a process and its children."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            said = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:  # it has just ended
            continue
        if int(said["PPid"]) == pid or int(said["Pid"]) == pid:
            total += 1024 * int(said.get("VmRSS", "0 kB").split()[0])
    return total


def screenshots() -> None:
    """The pictures of docs/explorer.md: `python -m bench.explore` makes them."""
    with served() as (client, _), opened() as browser:
        for name, (width, height, scale, state) in SHOTS.items():
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, device_scale_factor=scale)
            page.set_default_timeout(120_000)
            page.goto(f"{client.base_url}{state}")
            ready = "looked" if "pixel" in state else "drawn"
            page.wait_for_selector(f"body[data-state={ready}]")
            if width < 480:
                page.locator("#watch").scroll_into_view_if_needed()
                page.mouse.wheel(0, 560)
                page.wait_for_timeout(300)
            page.screenshot(path=DOCS / f"{name}.png")
            print(DOCS / f"{name}.png")


if __name__ == "__main__":
    screenshots()
