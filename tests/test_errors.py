"""What a command says when it ends: one sentence, on any terminal, with a file where there is
one."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def command(code: str, **settings) -> subprocess.CompletedProcess:
    """Python code under `sentences`, in a process of its own."""
    indented = "\n".join(f"    {line}" for line in code.splitlines())
    source = f"import errno, sys\nfrom composcope.errors import *\nwith sentences():\n{indented}\n"
    words = [sys.executable, "-c", source]
    settings = {"capture_output": True, "text": True, "encoding": "latin-1"} | settings
    return subprocess.run(words, **settings)


@pytest.mark.parametrize(
    ("code", "exit_code", "sentence"),
    [
        ("raise InputError('no such thing')", 2, "no such thing"),
        ("raise InputError('a\\n\\x1b[2Jb')", 2, "a??[2Jb"),
        ("raise Stopped('goes on from image 8', 15)", 143, "goes on from image 8"),
        ("raise KeyboardInterrupt", 130, "stopped; the same command goes on"),
        ("raise OSError(errno.ENOSPC, 'No space left', 'a.txt')", 2, "a.txt: No space left"),
        ("raise MemoryError", 2, "there is not enough memory for this"),
        ("import torch; torch.empty(2**60)", 2, "there is not enough memory for this"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143, "stopped; the same"),
    ],
)
def test_every_end_is_a_sentence_and_a_code(code, exit_code, sentence):
    done = command(code)
    assert done.returncode == exit_code
    assert done.stderr.startswith(f"composcope: {sentence}")
    assert done.stderr.count("\n") == 1


def test_a_bug_is_a_traceback():
    assert "ZeroDivisionError" in command("1 / 0").stderr


def test_an_error_in_a_file_of_the_user_is_told_with_its_line_and_a_signal_there_is_a_signal(
    tmp_path,
):
    own = tmp_path / "own.py"
    own.write_text("def call(what):\n    what()\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nfrom own import call\n"
    code += "with foreign('own:call'): call({})"
    done = command(code.format("lambda: 1 / 0"))
    said = "composcope: own.py, line 2: ZeroDivisionError: division by zero\n"
    assert (done.returncode, done.stderr) == (2, said)
    left = command(code.format("lambda: exit(3)"))
    assert (left.returncode, left.stderr) == (2, "composcope: own.py, line 2: SystemExit: 3\n")
    killed = command(code.format("lambda: __import__('signal').raise_signal(15)"))
    assert killed.returncode == 143 and killed.stderr.startswith("composcope: stopped")


def test_characters_that_a_terminal_lacks_do_not_end_a_command():
    done = command("print('│ ≤ ü')", env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stdout) == (0, "? ? ü\n")


BAR = "from composcope.progress import *\nfor _ in track(range(3), 'work'): pass\nprint('done')"


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-"])
def test_closed_streams_do_not_end_a_command(closed):
    source = f"from composcope.errors import *\nwith sentences():\n    {BAR.splitlines()[0]}\n"
    source += "    for _ in track(range(3), 'work'): pass\n    print('done')\n"
    words = ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, source]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.split()[:1] == ([] if "2>" in closed else ["work"])
    assert done.stdout == ("done\n" if closed == "2>&-" else "")


def test_forty_columns_have_room_for_the_time_left():
    """Without it the count and the clock were cut to dots."""
    done = command(BAR, env={**os.environ, "COLUMNS": "40", "PYTHONIOENCODING": "latin-1"})
    assert done.stderr.split() == ["work", "100%", "0:00:00"]


def test_a_full_disk_behind_standard_output_is_told():
    with open("/dev/full", "w") as full:
        done = command("print('x' * 10)", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert re.fullmatch(r"composcope: standard output.*: No space left on device\n", done.stderr)


@pytest.mark.parametrize("asked", ["--help", "--version", "rows --help"])
def test_a_reader_that_has_seen_enough_is_no_fault(asked):
    """`composcope --help | true`: standard output is a pipe that nobody reads."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "composcope", *asked.split()]
    ends = {"stdout": writer, "stderr": subprocess.PIPE, "text": True}
    done = subprocess.run(words, **ends, cwd=ROOT, env=buffered)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_only_the_first_of_several_processes_speaks():
    done = command("raise InputError('no')", env={**os.environ, "RANK": "1"})
    assert (done.returncode, done.stderr) == (2, "")


# Compile one small function where nothing but the temporary folder can be written to.
KERNEL = """
import os, sys, pathlib
sys.path.insert(0, sys.argv[1])
from composcope import compiled
from composcope.chance import below, key
assert compiled.__file__.startswith(sys.argv[1])
print(below(10, key(0, 0, 0)))
"""


READ_ONLY = """
mount -t tmpfs tmpfs "$1" && cp -r "$2" "$1" && mount -o remount,ro "$1" && exec "$3" -c "$4" "$1"
"""


def test_a_package_that_cannot_be_written_to_compiles_into_a_temporary_folder(tmp_path):
    """Read-only package and home: numba had nowhere to keep its machine code, and gave up."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("read-only folders cannot be mounted here")
    ignored = shutil.ignore_patterns("__pycache__", "models")
    shutil.copytree(ROOT / "composcope", tmp_path / "composcope", ignore=ignored)
    for name in ("mounted", "scratch"):
        (tmp_path / name).mkdir()
    words = ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", tmp_path / "mounted"]
    words += [tmp_path / "composcope", sys.executable, KERNEL]
    here = {"HOME": "/proc", "TMPDIR": str(tmp_path / "scratch"), "PATH": os.environ["PATH"]}
    done = subprocess.run(words, capture_output=True, text=True, env=here, cwd="/")
    assert done.returncode == 0, done.stderr[-500:]
    assert list((tmp_path / "scratch").glob(f"composcope-{os.getuid()}/*/*.nbi"))
