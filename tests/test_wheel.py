"""The package as users install it: a wheel in an environment that has the dependencies alone."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
JOURNEY = """
import composcope
from composcope import detect, draw, load
from composcope.scenes import PAPER_LOCATIONS

asked = PAPER_LOCATIONS[:2]
images = draw(load("exp1"), [asked] * 2, seeds=range(2), steps=8)
print(composcope.__file__, images.shape, [len(found) for found in detect(images)])
"""
# Stored and not packed: packing the weights of the models takes longer than all else.
BUILD = """
from setuptools.build_meta import build_wheel

print(build_wheel("dist", {"--build-option": "--compression=stored"}))
"""


def run(*words, cwd, **more):
    """A command that knows nothing of this clone."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=clean, capture_output=True, text=True, **more
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy: nothing of an older build comes in, and nothing is left here."""
    tree = tmp_path_factory.mktemp("tree")
    hidden = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
    shutil.copytree(ROOT / "composcope", tree / "composcope", ignore=hidden)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    name = run(sys.executable, "-c", BUILD, cwd=tree).splitlines()[-1]
    return tree / "dist" / name


def test_weights_that_ship_are_small(wheel):
    """40 MB in all: what a user fetches for models that can be trained in hours."""
    files = zipfile.ZipFile(wheel).infolist()
    weights = [file.file_size for file in files if file.filename.endswith(".safetensors")]
    assert len(weights) > 10
    assert sum(weights) <= 40_000_000


def test_the_wheel_has_what_is_needed(wheel):
    names = {*zipfile.ZipFile(wheel).namelist()}
    here = [path for path in (ROOT / "composcope").rglob("*") if path.is_file()]
    wanted = {str(path.relative_to(ROOT)) for path in here if "__pycache__" not in path.parts}
    assert wanted - names == set()
    assert "composcope/py.typed" in wanted
    assert any(name.startswith("composcope/experiments/") for name in names)


def test_the_readme_of_the_package_links_to_nothing_that_lies_beside_it_alone(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = message_from_bytes(archive.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    page = metadata.get_payload(decode=True).decode("utf-8")
    links = r"!?\[[^\]]*\]\((?!https?://)[^)]*\)"
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(re.findall(links, readme)) > 5 and not re.findall(links, page)
    assert "docs/tour.ipynb" in page and "The explorer: three models" not in page
    # Its code, tables and headings are README's, to the letter.
    kept = [line for line in readme.splitlines() if line and "](" not in line]
    assert [line for line in kept if line not in page.splitlines()] == []


def test_with_an_address_pictures_and_links_of_the_readme_lead_there():
    setup = runpy.run_path(str(ROOT / "setup.py"))
    told = '[project.urls]\nPaper = "https://a.b"\nRepository = "https://code.example/lab/scope/"\n'
    address = setup["repository"](told)
    assert address == "https://code.example/lab/scope"
    readme = (ROOT / "README.md").read_text("utf-8")
    page = setup["page"](readme, address)
    assert f"]({address}/raw/HEAD/docs/figure1.png)" in page
    # Undone, it is README again: nothing but addresses was added, and each leads to a file.
    assert re.sub(rf"{address}/(raw|blob)/HEAD/", "", page) == readme
    led_to = re.findall(rf"{address}/(?:raw|blob)/HEAD/([^)#]+)", page)
    assert len(led_to) > 5
    assert [path for path in led_to if not (ROOT / path).exists()] == []


def test_load_draw_and_count_from_an_empty_environment(wheel, tmp_path):
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    python = venv / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    quick = ("--quiet", "--no-compile")  # what is not imported need not be compiled
    run(*pip, "install", *quick, "--no-index", "--no-deps", wheel, cwd=tmp_path)

    # The dependencies of this environment, without what its own .pth files add: this clone.
    packages = Path(
        run(python, "-c", "import site; print(site.getsitepackages()[0])", cwd=tmp_path).strip()
    )
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))

    where, *rest = run(python, "-c", JOURNEY, cwd=tmp_path).split(maxsplit=1)
    assert Path(where).is_relative_to(venv)
    assert rest[0].startswith("(2, ")
    assert run(venv / "bin" / "composcope", "--version", cwd=tmp_path).strip()
