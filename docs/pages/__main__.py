"""`python -m docs.pages` writes the pages, figures and screenshots that are made of what ships.

Figures stand on white, so that they read on light pages and dark ones.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from composcope.files import whole, write_text
from composcope.report.drawing import style
from composcope.report.material import material
from composcope.runs.model import SHIPPED
from docs.pages.cards import cards
from docs.pages.results import FOLDER, page
from docs.pages.screens import SCREENS, chromium, take
from docs.pages.sentences import SHEET, sentence_sheet

DOCS = Path(__file__).parents[1]
READ = (".json", ".jsonl", ".npz", ".png")  # the files that pages and figures are made of


def fingerprint(folder: Path) -> str:
    """Eight characters that change with anything the pages are made of, figures too."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in READ:
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:8]


def pages(folder: Path = SHIPPED) -> tuple[dict[str, str], Mapping[str, Figure]]:
    """Text and figures by their paths below docs/."""
    with style():
        results = page(material(folder, []))
    mark = (
        f"<!-- Made by `make pages` from what ships, {fingerprint(folder)}: not to be edited. -->"
    )
    made = {f"{FOLDER}.md": f"{results.text}\n{mark}\n"}
    made |= {f"cards/{name}": text for name, text in cards(folder).items()}
    return made, results.figures


def save(figure: Figure, path: Path) -> None:
    """The same bytes for the same figure."""
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    settings = {"svg.hashsalt": path.name, "svg.fonttype": "path"}
    with matplotlib.rc_context(settings), whole(path) as part:
        figure.savefig(part, format=path.suffix[1:], facecolor="white", metadata=metadata)


def main() -> None:
    made, figures = pages()
    old = {*DOCS.glob(f"{FOLDER}/*"), *DOCS.glob("cards/*.md")}
    for name, text in made.items():
        write_text(DOCS / name, text)
    for name, figure in figures.items():
        save(figure, DOCS / name)
    new = {DOCS / name for name in (*made, *figures)}
    for path in old - new:
        path.unlink()
    save(sentence_sheet("text_control"), DOCS / SHEET)
    print(f"{len(made)} pages and {len(figures)} figures -> {DOCS}; make docs builds the site")
    screenshots()


def screenshots() -> None:
    names = " and ".join(SCREENS)
    if chromium() is None:
        print(f"no Chromium is installed: {names} stay as they were (apt-get install chromium)")
        return
    take(material(SHIPPED, []), DOCS, fingerprint(SHIPPED))
    print(f"{names} -> {DOCS}")


if __name__ == "__main__":
    main()
