"""The main job, small: scenes, shipped models drawn live, the page."""

import subprocess
import sys

from PIL import Image

from composcope.runs.model import SHIPPED


def test_the_demo_leaves_pictures_and_a_page(tmp_path):
    words = [sys.executable, "-m", "composcope", "demo", "--out", str(tmp_path), "--num", "1", "--steps", "2"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    with Image.open(tmp_path / "scenes.png") as picture:
        assert picture.width > 900
    shipped = [path.parent.name for path in SHIPPED.glob("*/config.json")]
    drawn = {path.stem for path in (tmp_path / "evaluate-live").glob("*.png")}
    assert drawn >= set(shipped) & {"exp1", "exp2", "exp3", "exp2l"}
    assert (tmp_path / "index.html").exists() == bool(shipped)
