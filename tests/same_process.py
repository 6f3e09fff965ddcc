"""A command in this process: `composcope WORDS` without the seconds in which a new Python imports
torch."""

import shlex
import sys

import pytest

from composcope.cli import main


def composcope(*words: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["composcope", *map(str, words)])
        main()


def typed(line: str) -> None:
    """The same as in a shell."""
    first, *words = shlex.split(line, comments=True)
    assert first == "composcope"
    composcope(*words)
