"""What `mkdocs build` does beside reading docs/: pages from the root, pictures of the models, the API.

Links in docs/ are those of the repository. Here those that lead out of docs/ are turned to copies
inside the site; other files of the repository, such as source, have no page and become words.
"""

import ast
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "composcope"
FROM_ROOT = ("CONTRIBUTING.md", "LOG.md", "CHANGELOG.md")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(```.*?```|`[^`\n]*`|^ {4}[^\n]*)", re.S | re.M)  # brackets in it are no links


def rooms() -> list[str]:
    """The rooms of the package, in the order of their names."""
    return sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation with all cards and all rooms."""
    cards = sorted(path.stem for path in (ROOT / "docs/cards").glob("*.md"))
    cards.sort(key=lambda name: name != "README")
    listed = {
        "CARDS": [f"cards/{name}.md" for name in cards],
        "API": ["api.md", *(f"api/{room}.md" for room in rooms())],
    }
    config.nav = [filled(entry, listed) for entry in config.nav or []]
    return config


def filled(entry, listed):
    """An entry of the navigation with the names in it replaced by the pages they stand for."""
    if isinstance(entry, dict):
        return {title: filled(value, listed) for title, value in entry.items()}
    if isinstance(entry, list):
        return [filled(part, listed) for part in entry]
    return listed.get(entry, entry)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name in FROM_ROOT:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for path in sorted(PACKAGE.glob("models/*/*.png")):
        name = str(path.relative_to(ROOT))
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for room in rooms():
        files.append(File.generated(config, f"api/{room}.md", content=api_page(room)))
    return files


def api_page(room: str) -> str:
    """What the files of a room say of themselves."""
    opening = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""
    parts = [f"# {room}", opening]
    for path in sorted((PACKAGE / room).glob("*.py")):
        if path.stem not in ("__init__", "__main__"):
            parts.append(f"::: composcope.{room}.{path.stem}")
    return "\n\n".join(parts)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with every link to what the site holds; README.md of the root is the first page."""
    here = PurePosixPath(page.file.src_uri)
    folder = PurePosixPath("docs") / here.parent
    if str(here) in FROM_ROOT:
        folder = PurePosixPath(".")

    def turned(match: re.Match) -> str:
        mark, words, path, anchor = match.groups(default="")
        target = PurePosixPath(normpath(folder / path))
        inside = str(target.relative_to("docs")) if target.is_relative_to("docs") else str(target)
        if target == PurePosixPath("README.md"):
            inside = "README.md"
            anchor = ""
        if files.get_file_from_path(inside) is None:
            return f"`{target}`" if words == path else words
        up = "../" * (len(here.parts) - 1)
        return f"{mark}[{words}]({up}{inside}{anchor})"

    parts = CODE.split(markdown)
    parts[::2] = [LINK.sub(turned, text) for text in parts[::2]]
    return "".join(parts)
