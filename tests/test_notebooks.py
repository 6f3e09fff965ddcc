"""The notebooks run as they stand, and are kept with their results: texts and pictures."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient

book = nbformat.read(sys.argv[1], 4)
NotebookClient(book, kernel_name="python3", timeout=None).execute()
nbformat.write(book, sys.argv[1])
"""


def results(path: Path) -> list[tuple[int, int]]:
    """Of each cell of code, how many pictures it shows and how many texts."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    counts = []
    for cell in cells:
        kinds = [{*output.get("data", {output["output_type"]: ""})} for output in cell["outputs"]]
        pictures = sum("image/png" in kind for kind in kinds)
        counts.append((pictures, len(kinds) - pictures))
    return counts


def models(path: Path) -> list[str]:
    """The weights and shapes that it tells of: those of the models that ship today."""
    return re.findall(r"'weights': '\w+'|torch\.Size\([^)]*\)", path.read_text())


@pytest.mark.parametrize("name", ["tour", "your_model"])
def test_a_notebook_shows_what_it_gives(name, tmp_path):
    """Executed in a copy: an error in a cell ends it, and as many results come as are kept."""
    kept = ROOT / "docs" / f"{name}.ipynb"
    copy = shutil.copy(kept, tmp_path)
    # As in conftest.py: a torchvision of another torch is not there for the kernel either.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['torchvision'] = None\n")
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXECUTE, copy],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "IPYTHONDIR": str(tmp_path / "ipython")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert results(Path(copy)) == results(kept)
    assert models(Path(copy)) == models(kept)
    assert sum(pictures for pictures, _ in results(kept)) >= 4
