"""The readme of the package: README.md as it can be shown elsewhere, without what lies beside it.

Pictures are left out and files of the repository named, not linked, on a package index; all else
that is to be said of the package is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

NOTE = "Pictures, and the files named here, are in the repository.\n"


def page(readme: str) -> str:
    words = re.sub(r"^!\[.*?\]\(.*?\)\n+", "", readme, flags=re.M)
    words = re.sub(r"\[([^\]]+)\]\((?!https?://)[^)]+\)", r"\1", words)
    title, rest = words.split("\n\n", 1)
    return f"{title}\n\n{NOTE}\n{rest}"


setup(
    long_description=page((Path(__file__).parent / "README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)
