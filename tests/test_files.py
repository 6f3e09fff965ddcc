"""Files that are whole or not there, locks that go with their holder, JSON with types checked."""

import errno
import multiprocessing
import os
import socket
import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch

from composcope import files
from composcope.errors import InputError
from composcope.files import alone, locked, parse_json, read_json, read_lines, whole, write_text
from composcope.tensors import save_tensors


@dataclass(frozen=True)
class Inner:
    width: int
    mult: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outer:
    name: str
    rate: float
    inner: Inner

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise InputError("a rate below 0")


def test_what_fails_leaves_neither_file_nor_folder(tmp_path):
    with pytest.raises(InputError), whole(tmp_path / "new" / "deep" / "a.txt") as partial:
        partial.write_text("half")
        raise InputError("no")
    with pytest.raises(InputError), locked(tmp_path / "new" / "run"):
        raise InputError("no")
    with pytest.raises(InputError), alone(tmp_path / "new" / "rows.jsonl"):
        raise InputError("no")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_does_not_take_what_was_there(tmp_path):
    write_text(tmp_path / "a.txt", "mine")
    with pytest.raises(InputError), whole(tmp_path / "a.txt") as partial:
        partial.write_text("half")
        raise InputError("no")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "mine"


def test_every_file_may_be_read_by_whom_the_umask_lets(tmp_path):
    """A writer that makes its own file, as safetensors does, makes it for its user alone."""
    before = os.umask(0o027)
    try:
        save_tensors(tmp_path / "a.safetensors", {"a": torch.zeros(1)})
        write_text(tmp_path / "a.txt", "mine")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as caught, whole(tmp_path / "a.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "a.txt")


def test_parts_of_dead_processes_go_and_those_of_living_ones_stay(tmp_path):
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    here = socket.gethostname()
    names = {
        f".K2.npz.{here}.{dead.stdout.strip()}.part": False,
        f".K2.npz.{here}.{os.getppid()}.part": True,
        f".K2.npz.elsewhere.{dead.stdout.strip()}.part": True,  # another machine's process
        ".mine.part": True,
    }
    for name in names:
        (tmp_path / name).write_text("half")
    write_text(tmp_path / "K3.npz", "whole")
    assert {name: (tmp_path / name).exists() for name in names} == names


def test_a_lock_is_there_only_while_it_is_held(tmp_path):
    with (
        locked(tmp_path),
        pytest.raises(InputError, match="in use by another process"),
        locked(tmp_path),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path):
        pass


def count_up(path, times):
    for _ in range(times):
        with alone(path):
            write_text(path, str(int(path.read_text()) + 1))


def test_writers_that_take_turns_lose_nothing(tmp_path):
    """Four processes add one a hundred times each; the lock comes and goes 400 times."""
    write_text(tmp_path / "n", "0")
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=count_up, args=(tmp_path / "n", 100)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (tmp_path / "n").read_text() == "400"
    assert [path.name for path in tmp_path.iterdir()] == ["n"]


GOOD = '{"name": "a", "rate": 1, "inner": {"width": 3, "mult": [1, 2]}}'


def test_json_becomes_dataclasses():
    assert parse_json(GOOD, Outer, "x") == Outer("a", 1.0, Inner(3, (1, 2)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace("3", '"3"'), r"Expected `int`, got `str` - at `\$.inner.width`"),
        (GOOD.replace("3", "3.5"), r"Expected `int`, got `float` - at `\$.inner.width`"),
        (GOOD.replace("3", "true"), r"Expected `int`, got `bool`"),
        (GOOD.replace("3", "9" * 400), "an integer of 400 digits"),
        (GOOD.replace('"rate": 1', '"rate": 1e999'), "out of range"),
        (GOOD.replace('"rate": 1', '"rate": NaN'), "malformed"),
        (GOOD.replace('"rate": 1', '"rate": -1'), "a rate below 0"),
        (GOOD.replace("mult", "mult_"), "there is no field 'inner.mult_'"),
        (GOOD.replace('"name": "a", ', ""), "missing required field `name`"),
        (GOOD[:-1], "truncated"),
        ("[" * 100_000 + "]" * 100_000, "recursion"),
        ('{"name": "\ud800"}', "surrogates"),
        ("[]", "Expected `object`, got `array`"),
    ],
)
def test_other_json_is_refused_in_a_sentence(text, told):
    with pytest.raises(InputError, match=f"^here: .*{told}"):
        parse_json(text, Outer, "here")


def test_a_wrong_line_is_named(tmp_path):
    (tmp_path / "rows.jsonl").write_text(GOOD + "\n\n" + GOOD.replace("3", "null") + "\n")
    with pytest.raises(
        InputError, match=r"rows.jsonl, line 3: Expected `int`, got `null` - at `\$.inner.width`"
    ):
        read_lines(tmp_path / "rows.jsonl", Outer)


def test_json_may_begin_with_a_byte_order_mark(tmp_path):
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / "one.json").write_text(GOOD.replace("\n", "\r\n"), encoding=encoding)
        assert read_json(tmp_path / "one.json", Outer) == Outer("a", 1.0, Inner(3, (1, 2)))


def test_what_is_no_file_or_too_long_is_not_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(InputError, match="is not a file"):
            read_json(path, Outer)
    monkeypatch.setattr(files, "LONGEST", 10)
    (tmp_path / "long.json").write_text(GOOD)
    with pytest.raises(InputError, match="too long for a file of this kind"):
        read_json(tmp_path / "long.json", Outer)
