"""The main job, small: scenes, shipped models drawn live, the page; what does not ship is said to be missing."""

import subprocess
import sys

from PIL import Image

from composcope.cli.demo import K_SHOWN, MACHINE, SHOWN
from composcope.results import read
from composcope.runs.model import SHIPPED


def test_the_demo_leaves_pictures_rows_and_a_page(tmp_path):
    words = [sys.executable, "-m", "composcope", "demo", "--out", str(tmp_path), "--num", "1", "--steps", "2"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    with Image.open(tmp_path / "scenes.png") as picture:
        assert picture.width > 900
    ships = {name for name, (run, _) in SHOWN.items() if (SHIPPED / run / "config.json").exists()} | {MACHINE}
    assert {path.parent.name for path in (tmp_path / "live").glob("*/drawn.png")} == ships
    asked = {}
    for row in read(tmp_path / "live" / "rows.jsonl"):
        asked.setdefault(row.run, []).append(row.setting.get("K") if row.value is not None else "missing")
    missing = set(SHOWN) - ships
    assert asked == {name: list(K_SHOWN) for name in ships} | {name: ["missing"] for name in missing}
    assert all(f"{name:10} does not ship" in done.stdout for name in missing)
    text = (tmp_path / "index.html").read_text()
    assert text.count("drawn now: 1, 3, 6, 9 objects asked for") == 2 * len(ships)  # in the caption and as alt text
    assert ("because it does not ship" in text) == bool(missing)
    *_, locality, path = done.stdout.splitlines()
    assert locality.startswith("Conditional locality") and path.endswith("index.html")
