"""The plan of the study is closed, and every node has a file of its own."""

import sys

import pytest

from composcope.errors import InputError
from composcope.study.plan import RUNS, plan

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
