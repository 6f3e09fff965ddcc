"""The scheduler does every node once, in order, goes on after a stop, and a failure stops only what depends on it."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.study.graph import Node, Study, cluster_starter
from composcope.study.plan import RUNS, plan

GRAPH = [Node("a", ("A",)), Node("b", ("B",), needs=("a",)), Node("c", ("C",)), Node("d", ("D",), needs=("b", "c"))]


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
    study = Study([replace(node, minutes=4) for node in GRAPH], tmp_path)  # a -> b -> d is the longest chain
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
        Study([Node("evaluate", ("evaluate", "exp1", "--num", num))], tmp_path).run(recorder(started), pause=0)
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
    assert Study(GRAPH, tmp_path).run(recorder(started, failing=("a",)), jobs=2, pause=0) == ["a", "b", "d"]
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
    outs = [node.command[node.command.index("--out") + 1] for node in nodes if "--grid" not in node.command]
    assert len(set(outs)) == len(outs)  # the same images judged within --grid follow, in the same file
    assert {need for node in nodes for need in node.needs} <= {node.name for node in nodes}
    assert {f"train {run.name}" for run in RUNS} <= {node.name for node in nodes}


def test_a_run_that_begins_with_another_is_trained_after_it(tmp_path):
    first, second = [node for node in plan("laptop", tmp_path, "exp2l-wide") if node.name.startswith("train")]
    assert (first.name, second.needs) == ("train exp2l-wide-one", (first.name,))
    out, init = (node.command[node.command.index(word) + 1] for node, word in ((first, "--out"), (second, "--init")))
    assert out == init
    assert plan("small", tmp_path, "exp2l-wide")[0].name == "train exp2l-wide"


@pytest.mark.parametrize(("call", "word"), [(("smoke", ".", "exp9"), "exp9"), (("huge", "."), "huge")])
def test_unknown_names_are_told(call, word):
    with pytest.raises(InputError, match=word):
        plan(*call)


def test_dry_run_prints_the_plan(capsys, tmp_path, monkeypatch):
    from composcope.cli import main

    monkeypatch.setattr(sys, "argv", ["composcope", "reproduce", "--dry-run", "--only", "exp1", "--out", str(tmp_path)])
    main()
    assert "train exp1" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
