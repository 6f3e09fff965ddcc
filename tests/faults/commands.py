"""Bad words for every command: each option with values that no option can mean, and some it could.

A command may do what it is asked, or refuse it in one sentence with exit code 2 and leave nothing
behind. It runs in this process, in an empty folder."""

import dataclasses
import io
import os
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from composcope import cli
from composcope.diffusion.recipe import Recipe
from composcope.runs.config import Architecture, Config
from tests.faults.inputs import Hang, Tally, limited
from tests.faults.readers import png

BAD = (
    *("-1", "nan", "inf", "1e999", "9" * 30, "0", "-0.5", "", " ", "x", "meta", "1,nan", "nan,nan"),
    *("/dev/null/x", "/proc/1/mem", "<script>", "\udcff", "1" * 5000, "3-1", "0x8", "cuda:99"),
)


def corpus(run: Path) -> list[list[str]]:
    """What once broke."""
    smoke = ["train", "exp1", "--preset", "smoke", "--out", "out"]
    huge = "9" * 30
    return [
        [*smoke, "--accumulate", "3"],
        [*smoke, "--mult", "0"],
        [*smoke, "--grid-size", "100000"],
        [*smoke, "--blocks", "10000000"],
        [*smoke, "--width", "1000000"],
        [*smoke, "--seed", huge],
        [*smoke, "--init", "nowhere"],
        [*smoke, "--data", "nowhere"],
        ["train", "images", "--preset", "smoke", "--out", "out"],
        ["train", "exp9", "--out", "out"],
        ["sample", str(run), "--asked", "nan,nan", "--out", "out/a.png"],
        ["sample", str(run), "--seed", huge],
        ["sample", str(run), "--device", "meta"],
        ["sample", str(run), "--steps", "0"],
        ["evaluate", str(run), "--device", "meta", "--out", "out/rows.jsonl"],
        ["evaluate", str(run), "--num", huge],
        ["evaluate", "nowhere", "--out", "out/rows.jsonl"],
        ["evaluate", str(run), "--out", "out"],
        ["locality", str(run), "--noise-levels", "0", "--out", "out/rows.jsonl"],
        ["demo", "--num", "0"],
        ["scenes", "--out", "out", "--num", "0"],
        ["scenes", "--out", "out", "--size", "0"],
        ["scenes", "--out", "out", "--objects", "50"],
        ["reproduce", "--preset", "smoke", "--only", "exp9"],
        ["reproduce", "--jobs", "0"],
    ]


OWN = "def denoiser(x, sigma, cond):\n    return x / 2\n"


def own_model(folder: Path) -> list[str]:
    """Words that audit a denoiser of one's own, which is put into a folder with a picture."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "own.py").write_text(OWN)
    (folder / "images" / "a.png").write_bytes(png())
    where = [f"{folder / 'own.py'}:denoiser", "--images", str(folder / "images")]
    return [*where, "--size", "8", "--sigmas", "1"]


# Taken, these would take long, or not end: what they are given is refused, after all else is read.
REFUSED = "demo", "features", "sim", "report", "explore"


def commands(run: Path) -> dict[str, list[str]]:
    """Words that make each command short; `run` is a finished run."""
    return {
        "demo": ["--num", "0"],
        "scenes": ["--out", "out", "--num", "1", "--size", "8"],
        "train": ["exp1", "--preset", "smoke", "--dry-run"],
        "distill": [str(run), "--images", "16", "--dry-run"],
        "sample": [str(run), "--asked", "0.5,0.5", "-n", "1", "--steps", "2"],
        "evaluate": [str(run), "--num", "1", "--max", "0", "--steps", "2"],
        "locality": [str(run), "--num", "1", "--noise-levels", "1"],
        "audit": own_model(run.parent / "own"),
        "features": [str(run), "--num", "0"],
        "theory": ["--only", "lemma_1"],
        "sim": ["--only", "nothing"],
        "reproduce": ["--preset", "smoke", "--only", "exp1", "--dry-run"],
        "report": ["--results", "nowhere", "--compare", "nobody", "nothing"],
        "explore": ["--port", "-1", "--token", "!"],
        "models": [],
        "rows": ["--folders", "."],
    }


def options(name: str) -> list[str]:
    """The options of a command, by the fields of its Args."""
    kinds = [cli.module_of(name).Args]
    if name == "train":
        kinds += [Config, Architecture, Recipe]
    fields = [field for kind in kinds for field in fields_of(kind)]
    return [f"--{field.replace('_', '-')}" for field in fields]


def fields_of(kind: type) -> Iterator[str]:
    """Those of a dataclass in it are options as its own are."""
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(field.type):
            yield from fields_of(field.type)
        else:
            yield field.name


def call(words: Sequence[str]) -> tuple[int, str]:
    """The exit code of a command in this process, and what it said on standard error."""
    before = sys.argv
    said = io.StringIO()
    sys.argv = ["composcope", *words]
    try:
        with limited(), redirect_stdout(io.StringIO()), redirect_stderr(said):
            cli.main()
        return 0, said.getvalue()
    except SystemExit as end:
        return int(end.code or 0), said.getvalue()
    finally:
        sys.argv = before


def attempt(words: Sequence[str], folder: Path, tally: Tally) -> None:
    """One command in an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    before = os.getcwd()
    os.chdir(folder)
    tally.tried += 1
    shown = " ".join(words)[:200]
    try:
        code, said = call(words)
        if code == 2:
            tally.refused += 1
            if left := [str(path) for path in Path().rglob("*")]:
                tally.left.append(f"{shown}: {left[:3]}")
        if code not in (0, 2) or (code == 2 and not said.strip()):
            tally.tracebacks.append(f"{shown}: exit code {code}: {said[-200:]}")
    except Hang:
        tally.hangs.append(shown)
    except BaseException as error:
        tally.tracebacks.append(f"{shown}: {error!r:.200}")
    finally:
        os.chdir(before)


def campaign(run: Path, folder: Path, count: int, seed: int = 0) -> Tally:
    """So many commands, each with one or two bad options; the first ones give every option one."""
    tally = Tally()
    for words in corpus(run):
        attempt(words, folder, tally)
    accepted = tally.tried - tally.refused  # all of them are refused
    if accepted:
        tally.tracebacks.append(f"{accepted} commands of the corpus were accepted")
    chance = random.Random(seed)
    bases = {name: words for name, words in commands(run).items() if exists(name)}
    every = [(name, option) for name in bases for option in options(name)]
    chance.shuffle(every)
    for number in range(count):
        name, option = every[number % len(every)]
        words = [name, *bases[name], option, chance.choice(BAD)]
        if chance.random() < 0.2:
            words += [chance.choice(options(name)), chance.choice(BAD)]
        attempt(words, folder, tally)
    return tally


def exists(name: str) -> bool:
    try:
        cli.module_of(name)
    except ImportError:
        return False
    return True
