"""The README keeps its word: its links lead somewhere, its numbers are measured, its commands and
examples run.
"""

import re
from pathlib import Path

import pytest
from same_process import typed

from composcope import rows

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_it_can_be_finished():
    lines = README.splitlines()
    assert len(lines) <= 170
    assert max(map(len, lines)) <= 120


def test_links_lead_somewhere():
    links = re.findall(r"\[[^\]]*\]\(([^)#:]+)\)", README)
    assert len(links) > 3
    missing = [path for path in links if not (ROOT / path).exists()]
    assert not missing


def test_the_numbers_are_those_of_the_rows():
    """Of each line of the table: the run, what is done to it, images, and K_max with its
    interval.
    """
    lines = re.findall(
        r"^\| (exp\w+)( \+ local conditions)? \|.*\| ([\d,]+) \|.*\| (\d+) \[(\d+), (\d+)\] \|$",
        README,
        re.M,
    )
    assert len(lines) == 5
    usual = {"rule": "paper", "asked": "paper", "snapshot": "final", "tolerance": 0.1}
    measured = rows(what="length/k_max", **usual)
    for run, local, images, *k_max in lines:
        done = ("local", 0.1875) if local else (None, None)
        found = [
            row
            for row in measured
            if (row["run"], row["intervention"], row["radius"]) == (run, *done)
        ]
        assert len(found) == 1
        assert [found[0][name] for name in ("value", "low", "high")] == [*map(int, k_max)]
        assert found[0]["images"] == int(images.replace(",", ""))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_commands_run_in_the_order_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) > 5
    for line in commands:
        typed(line)
    assert (tmp_path / "scenes" / "CLEVR_scenes.json").exists() and (
        tmp_path / "report" / "index.html"
    ).exists()


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.split()[1])
def test_the_examples_run(code):
    exec(compile(code, "README.md", "exec"), {})
