"""The scheduler does every node once, in order, goes on after a stop, and a failure stops only what
depends on it."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.study.graph import Node, Study, cluster_starter
from composcope.study.plan import plan, training
from composcope.study.table import RUNS

GRAPH = [
    Node("a", ("A",)),
    Node("b", ("B",), needs=("a",)),
    Node("c", ("C",)),
    Node("d", ("D",), needs=("b", "c")),
]


class Fake:
    """A job that ends at its second poll with the code it was given."""

    def __init__(self, code: int) -> None:
        self.codes = [None, code]

    def poll(self):
        return self.codes.pop(0)

    def stop(self):
        self.codes = [1]


def recorder(started: list[str], failing: tuple[str, ...] = ()):
    def start(node: Node, log: Path) -> Fake:
        started.append(node.name)
        return Fake(1 if node.name in failing else 0)

    return start


def test_the_time_left_is_that_of_the_longest_chain_or_of_all_the_work(tmp_path):
    study = Study(
        [replace(node, minutes=4) for node in GRAPH], tmp_path
    )  # a -> b -> d is the longest chain
    assert (study.minutes_left(1), study.minutes_left(2)) == (16, 12)
    study.running["a"] = (None, time.monotonic() - 60)
    assert study.minutes_left(2) == pytest.approx(11, abs=0.01)


def test_every_node_runs_once_after_what_it_needs(tmp_path):
    started: list[str] = []
    assert Study(GRAPH, tmp_path).run(recorder(started), jobs=2, pause=0) == []
    assert sorted(started) == ["a", "b", "c", "d"]
    assert started.index("a") < started.index("b") < started.index("d") and started[-1] == "d"
    assert Study(GRAPH, tmp_path).run(recorder(started), jobs=2, pause=0) == []
    assert len(started) == 4  # the second call had nothing to do


def test_another_command_under_the_same_name_is_not_done_yet(tmp_path):
    started: list[str] = []
    for num in ("24", "64", "64"):
        Study([Node("evaluate", ("evaluate", "exp1", "--num", num))], tmp_path).run(
            recorder(started), pause=0
        )
    assert started == ["evaluate", "evaluate"]


def test_no_more_than_jobs_at_a_time(tmp_path):
    study, most = Study([Node(str(i), ()) for i in range(5)], tmp_path), []

    def start(node: Node, log: Path) -> Fake:
        most.append(len(study.running) + 1)
        return Fake(0)

    study.run(start, jobs=2, pause=0)
    assert max(most) == 2


def test_a_failure_keeps_the_rest_going_and_is_tried_again(tmp_path):
    started: list[str] = []
    assert Study(GRAPH, tmp_path).run(recorder(started, failing=("a",)), jobs=2, pause=0) == [
        "a",
        "b",
        "d",
    ]
    assert sorted(started) == ["a", "c"]
    assert Study(GRAPH, tmp_path).run(recorder(started), jobs=2, pause=0) == []
    assert sorted(started) == ["a", "a", "b", "c", "d"]


def test_submitit_runs_a_node_and_reports_a_failure(tmp_path):
    start = cluster_starter(tmp_path, cluster="local")
    nodes = [Node("good", ("--help",)), Node("bad", ("no-such-command",))]
    study = Study(nodes, tmp_path)
    assert study.run(start, jobs=2, pause=0.2) == ["bad"]
    assert "commands:" in study.log("good").read_text()
    assert "no-such-command" in study.log("bad").read_text()


@pytest.mark.parametrize("preset", ["smoke", "laptop"])
def test_the_plan_is_closed_and_writes_each_file_once(tmp_path, preset):
    nodes = plan(preset, tmp_path)
    outs = [node.command[node.command.index("--out") + 1] for node in nodes]
    assert len(set(outs)) == len(outs)
    assert {need for node in nodes for need in node.needs} <= {node.name for node in nodes}
    assert {f"train {run.name}" for run in RUNS if not run.optional} <= {
        node.name for node in nodes
    }
    assert (
        plan(preset, tmp_path, ["exp1-six"])[0].name == "train exp1-six"
    )  # an optional one, when it is named


PARSE = """
import json, sys
from composcope.cli.train import parse
for words in json.load(sys.stdin):
    print(json.dumps(parse(words).config.json()))
"""


@pytest.mark.parametrize("preset", ["smoke", "laptop"])
def test_a_training_command_makes_the_config_of_the_table(tmp_path, preset):
    """What the plan asks of `composcope train` is the Config that the report reads from the table.

    In a process of its own: the command line's marks for what is missing are no strings.
    """
    commands = [training(run, preset, tmp_path, seed=0).command for run in RUNS]
    assert {command[0] for command in commands} == {"train"}
    text = json.dumps([command[1:] for command in commands])
    words = [sys.executable, "-c", PARSE]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    configs = [json.loads(line) for line in done.stdout.splitlines()]
    assert configs == [run.config(preset).json() for run in RUNS]


@pytest.mark.parametrize(
    ("call", "word"), [(("smoke", ".", ["exp9"]), "exp9"), (("huge", "."), "huge")]
)
def test_unknown_names_are_told(call, word):
    with pytest.raises(InputError, match=word):
        plan(*call)


def test_dry_run_prints_the_plan(capsys, tmp_path, monkeypatch):
    from composcope.cli import main

    monkeypatch.setattr(
        sys,
        "argv",
        ["composcope", "reproduce", "--dry-run", "--only", "exp1", "--out", str(tmp_path)],
    )
    main()
    assert "train exp1" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
