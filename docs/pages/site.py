"""What `mkdocs build` does beside reading docs/: pages from the root, pictures of the models, the API.

Links in docs/ are those of the repository. Here those that lead out of docs/ are turned to copies
inside the site; other files of the repository, such as source, have no page and become words.
"""

import ast
import re
from importlib import import_module
from pathlib import Path, PurePosixPath
from posixpath import normpath

from griffe import Class, Docstring, Extension, Object
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.pages.markdown import set_apart

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
    """What the files of a room say of themselves: a line of each, then all of it."""
    files = sorted((PACKAGE / room).glob("*.py"))
    names = [path.stem for path in files if path.stem not in ("__init__", "__main__")]
    parts = [f"# {room}", set_apart(opening(PACKAGE / room / "__init__.py"))]
    parts.append(public(f"composcope.{room}"))
    lines = [
        f"- [{name}][composcope.{room}.{name}]: {first_words(PACKAGE / room / f'{name}.py')}"
        for name in names
    ]
    parts += ["\n".join(lines), *(f"::: composcope.{room}.{name}" for name in names)]
    return "\n\n".join(parts)


def opening(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def first_words(path: Path) -> str:
    """The first sentence of a file; that after its command, if it opens with one."""
    said = opening(path).split("\n\n")
    text = said[1] if said[0].startswith("composcope ") else said[0]
    return re.split(r"(?<=[.?]) (?=[A-Z])", " ".join(text.split()))[0]


class SetApart(Extension):
    """Docstrings as Markdown; those of dataclasses with what the comments beside fields say."""

    def on_object(self, *, obj: Object, **_) -> None:
        if obj.docstring:
            obj.docstring.value = set_apart(obj.docstring.value)

    def on_class(self, *, cls: Class, **_) -> None:
        lines = fields(cls) if "dataclass" in cls.labels else []
        if lines:
            said = cls.docstring.value if cls.docstring else ""
            cls.docstring = Docstring("\n\n".join([said, "\n".join(lines)]), parent=cls)


def fields(cls: Class) -> list[str]:
    """A line for each field with a comment, at the end of its line or on the line above."""
    source = ["", *Path(str(cls.filepath)).read_text().splitlines()]
    found = []
    for name, field in cls.members.items():  # its own alone, none that are inherited
        if field.is_attribute and field.lineno and field.endlineno:
            above = source[field.lineno - 1].strip()
            comment = source[field.endlineno].partition("  # ")[2]
            if not comment and re.match("# [a-z]", above):  # a capital begins a heading of several
                comment = above.removeprefix("# ")
            found += [f"- `{name}`: {comment}"] if comment else []
    return found


def public(package: str) -> str:
    """The names that a package hands out; functions and classes are links to what is said of them."""
    names = sorted(getattr(import_module(package), "__all__", ()))
    words = [f"[`{name}`][{at}]" if (at := entry(package, name)) else f"`{name}`" for name in names]
    return f"To import from `{package}`: {', '.join(words)}." if words else ""


def entry(package: str, name: str) -> str | None:
    """Under which a function or class is found; constants have no entry of their own."""
    module = getattr(getattr(import_module(package), name), "__module__", None)
    return f"{module}.{name}" if module else None


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
    made = "".join(parts)
    made = re.sub(r"^\|.*", lambda line: unbroken(line[0]), made, flags=re.M)
    return linked(made) if str(here) == "api.md" else made


def unbroken(line: str) -> str:
    """A line of a table in which no interval or size of an image is split between two lines."""
    together = r"(?<=\[)[\d.-]+, [\d.-]+(?=\])|\d+ x \d+|(?<=\[)95 %"
    return re.sub(together, lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), line)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pictures lead to themselves, where they are as large as they were made; figures know how wide
    they were made, so that the style keeps their letters readable. No line ends inside an option."""
    folder = Path(config.docs_dir) / PurePosixPath(page.file.src_uri).parent

    def led(match: re.Match) -> str:
        image, path = match.groups()
        natural = width(folder / path)
        frame = f' class="figure" style="--natural:{natural:.0f}px"' if natural else ""
        return f'<a href="{path}"{frame}>{image}</a>'

    html = re.sub(r'(<img [^>]*src="([^"]+)"[^>]*>)', led, html)
    return re.sub(r"<code>[^<]*</code>", lambda code: whole_options(code[0]), html)


def whole_options(code: str) -> str:
    return re.sub(r"(?<=[ >])--[a-z][\w-]*", r"<span class=whole>\g<0></span>", code)


def width(path: Path) -> float:
    """Of a figure, in pixels; 0 of pictures, which are shown whole on every screen."""
    if path.suffix != ".svg":
        return 0
    return 4 / 3 * float(re.findall(r'width="([\d.]+)pt"', path.read_text())[0])


def linked(page: str) -> str:
    """The page with the names of its table as links to what is said of them."""
    for name in import_module("composcope").__all__:
        at = entry("composcope", name)
        page = re.sub(rf"^\| (`{name}\(.*?`) ", rf"| [\1][{at}] ", page, flags=re.M)
    return page
