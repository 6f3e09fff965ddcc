"""The walks of docs/architecture.md: every function exists, and no hop goes back."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from test_rooms import ROOMS, TABLE

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
Hop = tuple[str, str]


def walks(text: str) -> list[list[Hop]]:
    """The tables of the section Walks: `left`, `right`, words."""
    section = text.partition("## Walks\n")[2].partition("\n## ")[0]
    found: list[list[Hop]] = []
    for block in section.split("\n\n"):
        hops = re.findall(r"^\| `(.+?)` \| `(.+?)` \|", block, re.M)
        if hops:
            found.append(hops)
    return found


def room(name: str) -> str:
    return name.partition(".")[0]


def resolved(name: str) -> Any:
    """What `room.module.function` or `room.module.Class.method` names."""
    parts = name.split(".")
    module = importlib.import_module(f"composcope.{parts.pop(0)}")
    while parts:
        try:
            module = importlib.import_module(f"{module.__name__}.{parts[0]}")
        except ModuleNotFoundError:
            break
        parts.pop(0)
    thing: Any = module
    for part in parts:
        thing = getattr(thing, part)
    return thing


def reentered(hops: Sequence[Hop]) -> list[Hop]:
    """Hops into a room that the value has left before."""
    left: set[str] = set()
    back = []
    for source, target in hops:
        if room(target) in left:
            back.append((source, target))
        if room(source) != room(target):
            left.add(room(source))
    return back


def unshared(hops: Sequence[Hop]) -> list[Hop]:
    """Hops between rooms that no room may import both of, so that nobody can hand the value on."""
    reach = [{name, *TABLE[name]} for name in ROOMS]
    return [hop for hop in hops if not any({room(hop[0]), room(hop[1])} <= some for some in reach)]


def upward(hops: Sequence[Hop]) -> list[Hop]:
    """Calls of a room that the caller's may not import."""
    allowed = {name: {name, *TABLE[name]} for name in TABLE}
    return [(a, b) for a, b in hops if room(b) not in allowed[room(a)]]


def names_in(function: Any) -> set[str]:
    """All names and attributes in the source of a function."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


TRAINED, DRAWN, COMMAND = walks(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name", sorted({name for hop in TRAINED + DRAWN + COMMAND for name in hop})
)
def test_every_function_of_a_walk_exists(name: str):
    assert callable(resolved(name))


@pytest.mark.parametrize("walk", [TRAINED, DRAWN], ids=["trained", "drawn"])
def test_a_value_goes_on_from_where_it_is_and_never_back(walk: list[Hop]):
    assert [target for _, target in walk[:-1]] == [source for source, _ in walk[1:]]
    assert not reentered(walk)
    assert not unshared(walk)


def test_the_command_calls_downwards_only():
    assert not upward(COMMAND)


def test_every_caller_of_the_command_is_called_before():
    reached = {COMMAND[0][0]}
    for caller, called in COMMAND:
        assert caller in reached
        reached.add(called)


@pytest.mark.parametrize("hop", COMMAND, ids=" -> ".join)
def test_every_caller_of_the_command_names_what_it_calls(hop: Hop):
    caller, called = hop
    assert called.rpartition(".")[2] in names_in(resolved(caller))


def test_the_checks_can_fail():
    back = [("scenes.a", "runs.b"), ("runs.b", "scenes.c")]
    assert reentered(back) == back[1:]
    assert unshared([("nets.a", "study.b"), ("scenes.a", "runs.b")]) == [("nets.a", "study.b")]
    assert upward([("runs.a", "cli.b"), ("cli.b", "runs.a")]) == [("runs.a", "cli.b")]
    with pytest.raises(AttributeError):
        resolved("scenes.render.renders")
