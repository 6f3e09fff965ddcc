"""Conditioners are plugs: no file but those that define them asks which one it has."""

import ast
from collections.abc import Iterator
from pathlib import Path

from composcope.scenes.condition import CONDITIONERS, VOCABULARY

ROOT = Path(__file__).parents[1]
NAMES = {*CONDITIONERS, VOCABULARY}
CLASSES = {type(make(4)).__name__ for make in CONDITIONERS.values()}


def questions(source: str) -> Iterator[str]:
    """Comparisons of a conditioner with a name, tables by its name, and tests for its class."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            names = {side.value for side in sides if isinstance(side, ast.Constant)} & NAMES
            asked = names and any("conditioner" in ast.unparse(side) for side in sides)
        elif isinstance(node, ast.Call):
            called, words = ast.unparse(node.func), [ast.unparse(word) for word in node.args]
            tested = called == "isinstance" and {*words[1].replace(" ", "").split("|")} & CLASSES
            keys = words[:1] if called.endswith(".get") else []
            asked = tested or any(key.endswith(".conditioner") for key in keys)
        elif isinstance(node, ast.Subscript):
            table, key = ast.unparse(node.value), ast.unparse(node.slice)
            asked = key.endswith(".conditioner") and table != "CONDITIONERS"
        else:
            continue
        if asked:
            yield ast.unparse(node)


def test_no_file_asks_which_conditioner_it_has():
    for file in ROOT.glob("composcope/**/*.py"):
        if file.parent.name != "scenes":
            assert not [*questions(file.read_text())], file


def test_the_check_can_fail():
    for source in (
        'config.conditioner == "color"',
        "isinstance(conditioner, LocationGrid | LocationList)",
        'WORDS.get(config.conditioner, "")',
        "WORDS[config.conditioner]",
    ):
        assert [*questions(source)] == [source.replace('"', "'")]
