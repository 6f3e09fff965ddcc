"""`composcope scenes` as a user runs it: killed in a process of its own, run again, and asked for
nonsense."""

import signal
import subprocess
import sys
import time

import pytest
from same_process import composcope

COMMAND = [sys.executable, "-c", "from composcope.cli import main; main()", "scenes"]


def contents(folder):
    files = (f for f in sorted(folder.rglob("*")) if f.is_file())
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


def test_killed_and_run_again_gives_the_same_bytes(tmp_path, capsys):
    job = ("--objects", "1-2", "--num", 200, "--size", "64x48", "--seed", 3, "--out")
    composcope("scenes", *job, tmp_path / "whole")
    assert capsys.readouterr().out.startswith("200 scenes are in")
    process = subprocess.Popen(
        [*COMMAND, *map(str, job), tmp_path / "killed"], stderr=subprocess.DEVNULL
    )
    images = tmp_path / "killed" / "images"
    while process.poll() is None and len(list(images.glob("*.png"))) <= 3:
        time.sleep(0.001)  # the core is for the renderer
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "CLEVR_scenes.json").exists()
    composcope("scenes", *job, tmp_path / "killed")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--objects", "three"), "--objects 'three' is not like 3 or 1-3"),
        (("--objects", "3-1"), "not 3-1"),
        (("--objects", "40", "--num", "2"), "no scene of 40 objects"),
        (("--size", "0"), "an image of 0x0 pixels"),
        (("--size", "9999999"), "no more than 2^26 pixels"),
        (("--size", "12x"), "--size '12x' is not like 128 or 320x240"),
        (("--num", "-1"), "at least 1, not -1"),
    ],
)
def test_nonsense_gets_one_sentence(args, sentence, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        composcope("scenes", *args, "--out", tmp_path / "new")
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert said.startswith("composcope: ")
    assert sentence in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()
