"""The README keeps its word: its tree is the tree, and its commands and examples run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def tree_paths(readme: str) -> set[str]:
    """Paths named by the annotated tree: indentation of two is a level, a name ends at the first run of two spaces."""
    block = re.search(r"```tree\n(.*?)```", readme, re.S)
    assert block, "README has no ```tree block"
    paths, stack = set(), []
    for line in block.group(1).splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name = re.split(r"\s{2,}", line.strip())[0]
        stack[depth:] = [name.rstrip("/")]
        paths.add("/".join(stack))
    return paths


def tracked() -> set[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return set(listed) or {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py")}


def test_every_path_of_the_tree_exists():
    missing = {path for path in tree_paths(README) if not (ROOT / path).exists()}
    assert not missing


def test_every_source_file_is_in_the_tree():
    sources = {path for path in tracked() if re.match(r"(composcope|bench)/.*\.py$", path)}
    named = {path for path in sources if not path.endswith("__init__.py")}
    assert named - tree_paths(README) == set()


def test_linked_pictures_exist():
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / path).exists(), path


ELSEWHERE = {"composcope theory", "composcope sim"}  # a minute each: tests/test_theory_claims.py runs them whole


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_commands_run_in_the_order_they_stand(tmp_path):
    commands = [line for block in blocks("sh") for line in block.splitlines() if line not in ELSEWHERE]
    assert len(commands) > 5
    for line in commands:
        words = shlex.split(line)
        assert words[0] == "composcope"
        done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}: {done.stderr[-500:]}"
    assert (tmp_path / "scenes" / "CLEVR_scenes.json").exists() and (tmp_path / "report" / "index.html").exists()


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.split()[1])
def test_the_examples_run(code):
    exec(compile(code, "README.md", "exec"), {})
