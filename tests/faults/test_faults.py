"""A short campaign of faults; `python -m bench faults` is the whole of it."""

from pathlib import Path

import pytest

from tests.faults import commands, inputs, kills
from tests.faults.readers import corpus, readers


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A finished run of smoke size."""
    folder = tmp_path_factory.mktemp("faults") / "run"
    assert kills.done(kills.train, folder) == 0
    return folder


def test_every_reader_takes_or_refuses_bad_files_in_a_sentence(run, tmp_path):
    tally = inputs.campaign(readers(run), corpus(tmp_path), tmp_path, examples=10)
    assert tally.tried > 200
    assert tally.faults == []


def test_valid_files_are_taken_and_all_of_the_corpus_is_read(run, tmp_path):
    """A reader that refuses everything would pass the campaign."""
    tally = inputs.Tally()
    for reader in readers(run):
        if reader.name == "snapshot.pkl":
            continue  # its network is a stub; tests/test_adapters_edm2.py has whole ones
        inputs.attempt(reader, reader.valid, tmp_path, tally)
        assert (tally.refused, tally.faults) == (0, []), reader.name
    assert set(corpus(tmp_path)) <= {reader.name for reader in readers(run)}


def test_every_command_takes_or_refuses_bad_words_and_leaves_nothing(run, tmp_path):
    tally = commands.campaign(run, tmp_path / "here", count=100)
    assert tally.tried == 100 + len(commands.corpus(run))
    assert tally.faults == []


def test_every_command_is_in_the_campaign_with_words_that_it_takes(run, tmp_path, monkeypatch):
    """Else a bad word would be refused for the others."""
    bases = commands.commands(run)
    assert set(bases) == set(commands.cli.COMMANDS)
    monkeypatch.chdir(tmp_path)
    codes = {name: commands.call([name, *words])[0] for name, words in bases.items()}
    assert {name for name, code in codes.items() if code} == set(commands.REFUSED)


@pytest.mark.parametrize("name", ["train", "scenes", "evaluate"])
def test_what_is_killed_ends_bit_for_bit_as_if_it_never_was(run, tmp_path, name):
    work = {"train": (kills.train,), "scenes": (kills.scenes,), "evaluate": (kills.measure, run)}
    tally = kills.Tally()
    kills.kill(work[name][0], tmp_path, *work[name][1:], kills=3, tally=tally)
    assert tally.kills >= 3
    assert tally.faults == []


def test_full_disks_are_told_with_a_file_and_lose_nothing(tmp_path):
    tally = kills.Tally()
    assert kills.fill(kills.scenes, tmp_path, times=3, tally=tally) > 0
    assert tally.faults == []


def test_rows_of_several_writers_are_all_there(tmp_path):
    tally = kills.Tally()
    assert kills.write_together(tmp_path, writers=3, rows=20, tally=tally) == 60
    assert tally.faults == []


def test_a_fault_would_be_counted(tmp_path):
    """A reader that breaks, hangs or runs what it reads is told."""

    def breaks(path: Path) -> None:
        raise KeyError("x")

    def runs(path: Path) -> None:
        (tmp_path / "canary").touch()

    tally = inputs.Tally()
    for read in (breaks, runs):
        inputs.attempt(inputs.Reader("a", b"x", read, None), b"x", tmp_path, tally)
    assert (len(tally.tracebacks), len(tally.executions)) == (1, 1)
