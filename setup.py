"""The readme of the package: README.md as it can be shown elsewhere, without what lies beside it.

A package index shows what has an address. With a line `Repository = "https://..."` under
[project.urls] pictures and links lead there; without one, pictures are left out and files named.
All else that is to be said of the package is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
NOTE = "Pictures, and the files named here, are in the repository.\n"
PICTURE = r"!\[([^\]]*)\]\((?!https?://)([^)]+)\)"
LINK = r"(?<!!)\[([^\]]+)\]\((?!https?://|#)([^)]+)\)"


def repository(pyproject: str) -> str | None:
    found = re.search(r'^Repository = "(.+?)/?"$', pyproject, flags=re.M)
    return found and found[1]


def page(readme: str, address: str | None) -> str:
    if address:
        pictures = re.sub(PICTURE, rf"![\1]({address}/raw/HEAD/\2)", readme)
        return re.sub(LINK, rf"[\1]({address}/blob/HEAD/\2)", pictures)
    words = re.sub(rf"^{PICTURE}\n+", "", readme, flags=re.M)
    title, rest = re.sub(LINK, r"\1", words).split("\n\n", 1)
    return f"{title}\n\n{NOTE}\n{rest}"


if __name__ == "__main__":
    address = repository((HERE / "pyproject.toml").read_text("utf-8"))
    setup(
        long_description=page((HERE / "README.md").read_text("utf-8"), address),
        long_description_content_type="text/markdown",
    )
