"""The scheduler does every node once, in order, goes on after a stop, and a failure stops only what
depends on it."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from composcope.errors import InputError
from composcope.files import locked
from composcope.study.schedule import Done, Node, Study, driver

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

    def terminate(self):
        self.codes = [1]


def recorder(started: list[str], failing: tuple[str, ...] = ()):
    def start(node: Node, log: Path, keep_open: tuple[int, ...]) -> Fake:
        started.append(node.name)
        return Fake(1 if node.name in failing else 0)

    return start


def test_the_time_left_is_that_of_the_longest_chain_or_of_all_the_work(tmp_path):
    # A -> b -> d is the longest chain.
    study = Study([replace(node, minutes=4) for node in GRAPH], tmp_path)
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
    study = Study([Node(str(i), ()) for i in range(5)], tmp_path)
    most = []

    def start(node: Node, log: Path, keep_open: tuple[int, ...]) -> Fake:
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


def test_a_node_is_a_command_and_a_failure_is_in_its_log(tmp_path):
    study = Study([Node("good", ("--help",)), Node("bad", ("no-such-command",))], tmp_path)
    assert study.run(jobs=2, pause=0.2) == ["bad"]
    assert "commands:" in study.log("good").read_text()
    assert "no-such-command" in study.log("bad").read_text()


def test_the_table_begins_with_what_runs(tmp_path):
    """A study has more nodes than a terminal has lines."""
    study = Study(GRAPH, tmp_path)
    Done(1.0, GRAPH[0].command).write(study.marker("a"))
    study.running["c"] = (None, time.monotonic())
    assert list(study.table(1).columns[0].cells) == ["c", "b", "d", "a"]
    assert list(study.table(1, commands=True).columns[0].cells) == ["a", "b", "c", "d"]


def test_the_table_ends_with_its_line(tmp_path, capsys):
    """Where standard error is no terminal, the next sentence was glued to it."""
    Study(GRAPH, tmp_path).run(recorder([]), pause=0)
    assert capsys.readouterr().err.endswith("┘\n")


def test_a_marker_that_is_not_one_is_named(tmp_path):
    study = Study([Node("a", ("A",))], tmp_path)
    study.marker("a").parent.mkdir(parents=True)
    study.marker("a").write_text('{"minutes": "3", "command": ["A"]}')
    with pytest.raises(InputError, match=r"a.json: Expected `float`, got `str` - at `\$.minutes`"):
        study.run(recorder([]), pause=0)


# What a node does here: hold its folder, as a training does, and wait.
HOLD = """
import signal, sys
from pathlib import Path
from composcope.errors import sentences
from composcope.files import locked
with sentences(), locked(Path(sys.argv[1])):
    Path(sys.argv[1], "begun").touch()
    signal.pause()
"""

# A study of two such nodes; the command line of each is replaced after what a node does first.
DRIVER = """
import subprocess, sys
from pathlib import Path
from composcope.errors import sentences
from composcope.study import schedule
popen = subprocess.Popen
def held(command, **settings):
    return popen([*command[:4], sys.executable, "-c", sys.argv[2], command[-1]], **settings)
subprocess.Popen = held
folder = Path(sys.argv[1])
with sentences():
    nodes = [schedule.Node(name, (str(folder / name),)) for name in "ab"]
    schedule.Study(nodes, folder).run(pause=0.1)
"""


def begun(folder, study):
    """Wait until both nodes hold their folders."""
    while not all((folder / name / "begun").exists() for name in "ab"):
        assert study.poll() is None, study.stderr.read()
        time.sleep(0.05)
    for name in "ab":
        (folder / name / "begun").unlink()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_what_a_study_started_ends_with_it(tmp_path, number):
    """However it ends: the next one waits until the folders are free, and has them."""
    command = [sys.executable, "-c", DRIVER, str(tmp_path), HOLD]
    for _ in range(2):
        first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        begun(tmp_path, first)
        second = subprocess.run(command, capture_output=True, text=True)
        assert second.returncode == 2
        assert "in use by another `composcope reproduce`" in second.stderr
        first.send_signal(number)
        first.communicate()
        assert first.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    with driver(tmp_path), locked(tmp_path / "a"), locked(tmp_path / "b"):
        pass
