"""Options that would do nothing where they are given: refused by name, before any work."""

import pytest
from same_process import composcope

UNUSED = {
    "evaluate --images {} --asked a.json --way random": "--way is of a RUN",
    "evaluate --images {} --asked a.json --num 9": "--num is of a RUN",
    "evaluate --images {} --asked a.json --intervention local": "--intervention is of a RUN",
    "evaluate exp1 --view square": "--view is of --images",
    "evaluate exp1 --extras 2": "--extras is of --images",
    "features color --grid 2": "--grid is asked of a text-to-image model",
    "features color --prompt cat": "--prompt is asked of a text-to-image model",
    "features --sdxl text_control --num 3": "--num is of a RUN",
    "sim --draws 3": "--draws is of --circles",
    "sim --circles --only order": "--only names toys",
}

NOWHERE = {
    "reproduce --dry-run --partition gpu": "--partition is of jobs of a cluster: give --executor slurm",
    "rows --csv --json": "give one of --csv, --json, --parquet",
    "rows --parquet {}/sheet.png": "sheet.png: the name of the file ends in .parquet",
    "report --out /dev/null": "--out /dev/null: a folder, or a page whose name ends in .html",
    "features --sdxl text_control --prompt= ": "--prompt is empty",
    "explore --results {}/none": "--results: there is no folder",
    "train exp1 --preset smoke --field words --out {}/run": "--field words is of the metadata",
}


@pytest.mark.parametrize("words", NOWHERE)
def test_options_that_need_or_exclude_another(words, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        composcope(*words.format(tmp_path).split())
    assert stop.value.code == 2 and NOWHERE[words] in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", UNUSED)
def test_an_option_that_would_do_nothing_is_refused(words, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        composcope(*words.format(tmp_path).split(), "--out", tmp_path / "rows.jsonl")
    assert stop.value.code == 2 and UNUSED[words] in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
