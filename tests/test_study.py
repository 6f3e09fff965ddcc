"""The plan of the study is closed, and every node has a file of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from same_process import composcope

from composcope.errors import InputError
from composcope.study import cost
from composcope.study.plan import plan, training_node
from composcope.study.table import BY_NAME, RUNS

PRESETS = ("smoke", "laptop")


@pytest.mark.parametrize("preset", PRESETS)
def test_the_plan_is_closed_and_writes_each_file_once(tmp_path, preset):
    nodes = plan(preset, tmp_path)
    outs = [node.command[node.command.index("--out") + 1] for node in nodes]
    assert len(set(outs)) == len(outs)
    assert {need for node in nodes for need in node.needs} <= {node.name for node in nodes}
    names = {node.name for node in nodes}
    trained = [run.config(preset) for run in RUNS if f"train {run.name}" in names]
    assert {*trained} == {run.config(preset) for run in RUNS if not run.optional}
    assert len({*trained}) == len(trained)  # of two runs that are one at this preset, one
    # An optional one, when it is named.
    assert plan(preset, tmp_path, ["exp1-six"])[0].name == "train exp1-six"


PARSE = """
import json, sys
from composcope.cli import arguments, train
for words in json.load(sys.stdin):
    print(json.dumps(arguments(train, "train", words).config.json()))
"""


@pytest.fixture(scope="module")
def parsed() -> dict[str, list[str]]:
    """The configs that `composcope train` makes of what the plan asks of it, by the preset.

    In a process of its own: the command line's marks for what is missing are no strings."""
    commands = [training_node(run, preset, Path(), 0).command for preset in PRESETS for run in RUNS]
    assert {command[0] for command in commands} == {"train"}
    text = json.dumps([command[1:] for command in commands])
    words = [sys.executable, "-c", PARSE]
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    configs = [json.loads(line) for line in done.stdout.splitlines()]
    count = len(RUNS)
    return {name: configs[i * count : (i + 1) * count] for i, name in enumerate(PRESETS)}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_training_command_makes_the_config_of_the_table(parsed, preset):
    """What the plan asks of `composcope train` is the Config that the report reads from the table."""
    assert parsed[preset] == [run.config(preset).json() for run in RUNS]


@pytest.mark.parametrize(
    ("call", "word"), [(("smoke", ".", ["exp9"]), "exp9"), (("huge", "."), "huge")]
)
def test_unknown_names_are_told(call, word):
    with pytest.raises(InputError, match=word):
        plan(*call)


def test_dry_run_prints_the_plan(capsys, tmp_path):
    composcope("reproduce", "--dry-run", "--only", "exp1", "--out", tmp_path)
    assert "train exp1" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_dry_run_of_the_paper_tells_gpu_hours(capsys, tmp_path):
    """The operations of its trainings at the stated rate, and not the minutes of a laptop."""
    composcope("reproduce", "--preset", "paper", "--dry-run", "--only", "exp1", "--out", tmp_path)
    told = re.search(r"measurements; ([\d,.]+) hours of one GPU are left", capsys.readouterr().out)
    hours = cost.training_minutes(BY_NAME["exp1"].config("paper"), "paper") / 60
    assert hours < float(told[1].replace(",", "")) < 1.2 * hours


def test_the_page_on_clusters_counts_what_is_planned():
    page = (Path(__file__).parents[1] / "docs" / "clusters.md").read_text()
    for preset in ("small", "paper"):
        names = [node.name for node in plan(preset, "study")]
        trainings = sum(name.startswith("train ") for name in names)
        assert f"| {trainings}, {len(names) - trainings} |" in page
