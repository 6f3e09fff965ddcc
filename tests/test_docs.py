"""The pages keep their word: links and anchors lead somewhere, what is made of rows is made of the
rows that ship, examples and commands run, and the site is built without a warning."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import composcope
from composcope.cli import arguments, module_of
from composcope.pictures import picture_size, read_picture
from composcope.report.cells import Html, Table, command_cell
from composcope.report.marks import Verdict
from composcope.report.material import Material
from composcope.report.tables import by_number
from composcope.results import Row, add_rows, gather
from composcope.results.samples import Record, Samples
from composcope.runs.model import SHIPPED
from composcope.scenes.condition import PAPER_LOCATIONS
from composcope.study.table import LOCAL
from docs.pages.__main__ import DOCS, fingerprint, pages
from docs.pages.cards import cards, per_cent
from docs.pages.markdown import set_apart, table
from docs.pages.results import FIRST, FOLDER, figure_1, page
from docs.pages.screens import SCREENS, chromium, mark_of, take
from docs.pages.sentences import COLUMNS, sheet_of

ROOT = Path(__file__).parents[1]
TEXTS = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("cards/*.md")])


# ----------------------------------------------------------------------------
# Links and anchors.


def prose(text: str) -> str:
    """Without code, in which brackets are no links."""
    return re.sub(r"```.*?```|`[^`\n]*`|^ {4}[^\n]*", "", text, flags=re.S | re.M)


def anchors(path: Path) -> set[str]:
    """Of the headings of a page, as the repository's pages and the site both make them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", path.read_text(), flags=re.S), re.M)
    plain = (re.sub(r"[^\w\- ]", "", title.replace("`", "")).strip().lower() for title in titles)
    return {title.replace(" ", "-") for title in plain}


def dead_links(path: Path) -> list[str]:
    """The links of a page that lead nowhere; addresses of other places are not asked."""
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path.read_text())):
        name, _, anchor = link.partition("#")
        if ":" in name:
            continue
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    return dead


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(path):
    assert not dead_links(path)


def test_dead_links_are_found(tmp_path):
    (tmp_path / "there.md").write_text("# Here I am: 2\n```\n# not here\n```\n")
    links = ["there.md", "there.md#here-i-am-2", "there.md#not-here", "gone.md", "#mine", "a:b"]
    text = "# Mine\n" + " ".join(f"[words]({link})" for link in links) + " `[no](link)`"
    (tmp_path / "page.md").write_text(text)
    assert dead_links(tmp_path / "page.md") == ["there.md#not-here", "gone.md"]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_local_conditions_have_one_name(path):
    """The log tells what was thought at the time."""
    if path.name != "LOG.md":
        text = path.read_text()
        assert not re.search(r"\brepair|\bmend(s|ed|ing)?\b|\w \+ local(?! conditions)", text)


# ----------------------------------------------------------------------------
# What is made of rows.


@pytest.fixture(scope="module")
def shipped():
    """The pages of what ships, and their figures."""
    return pages()


def test_pages_are_made_of_what_ships(shipped):
    """If not: `make pages`."""
    made, figures = shipped
    assert {f"{FOLDER}/{path.name}" for path in DOCS.glob(f"{FOLDER}/*")} == {*figures} - {FIRST}
    assert {f"cards/{path.name}" for path in DOCS.glob("cards/*.md")} == {
        name for name in made if name.startswith("cards/")
    }
    for name, text in made.items():
        assert (DOCS / name).read_text() == text, f"{name} is of other rows: make pages"


@pytest.mark.parametrize("name", SCREENS)
def test_screenshots_show_what_ships(name):
    """If not: `make pages`, on a machine with Chromium."""
    assert picture_size(DOCS / name) == SCREENS[name]
    assert mark_of(DOCS / name) == fingerprint(SHIPPED)


@pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")
def test_screenshots_are_taken_at_their_sizes(tmp_path):
    take(Material(), tmp_path, "of no rows")
    assert {path.name for path in tmp_path.iterdir()} == {*SCREENS}
    for name, size in SCREENS.items():
        assert picture_size(tmp_path / name) == size
        assert mark_of(tmp_path / name) == "of no rows"
        assert read_picture(tmp_path / name).std() > 1  # there is something on it


def test_a_changed_row_is_another_fingerprint(tmp_path):
    add_rows(tmp_path / "rows.jsonl", [Row("length/k_max", 3)])
    before = fingerprint(tmp_path)
    assert fingerprint(tmp_path) == before
    add_rows(tmp_path / "rows.jsonl", [Row("length/k_max", 4)])
    assert fingerprint(tmp_path) != before


def test_cards_of_any_models(tmp_path):
    """One that was only trained, and one with a row; neither is in the study."""
    for name in ("bare", "mine"):
        (tmp_path / name).mkdir()
        for file in ("config.json", "model.safetensors"):
            shutil.copy(SHIPPED / "exp1" / file, tmp_path / name / file)
    about = {"run": "mine", "snapshot": "final", "asked": "paper", "tolerance": 0.1, "n": 8}
    rows = [Row("length/k_max", 7, low=5.0, high=8.0, rule="paper", max_K=12, **about)]
    rows += [Row("length/exact", share, K=K, **about) for K, share in ((1, 1.0), (2, 0.25))]
    add_rows(tmp_path / "mine" / "rows.jsonl", rows)
    made = cards(tmp_path)
    assert {*made} == {"README.md", "bare.md", "mine.md"}
    assert "Nothing of this is measured." in made["bare.md"] and "no rows ship" in made["bare.md"]
    assert "| time | not known |" in made["bare.md"] and "No sheet ships" in made["bare.md"]
    assert (
        "K_max is 7 [5, 8] by the paper's rule (paper: 9 in v1, 7 in v3; agrees)" in made["mine.md"]
    )
    assert "its images show exactly what is asked: 25 % at K = 2." in made["mine.md"]
    assert "| 2 | 0.25 |" in made["mine.md"]
    assert re.search(r"\| \[mine\]\(mine.md\) \|.*\| 7 \[5, 8\] \|", made["README.md"])


def test_a_card_of_a_student_says_what_it_learned_from(shipped):
    text = shipped[0]["cards/exp2-student.md"]
    assert "A student of exp2 + guided local conditions" in text
    assert "paper:" not in text  # it has no such model
    assert "{" not in text
    assert "none were seen" in text and "images seen" not in text


def test_a_card_says_where_the_paper_has_its_model(shipped):
    made, _ = shipped
    assert "In the paper: Fig. 1, 2, 10; Tables 1, 2." in made["cards/exp2.md"]
    assert "It is not in the paper: the list with one map" in made["cards/exp3s.md"]
    assert "Trained on 1 to 3 objects, only one of them labelled." in made["cards/exp2.md"]


def test_a_sheet_of_sentences_counts_the_phrases_that_are_met():
    """Below each picture its sentence; empty pictures meet none."""
    left, right = ("red", "cube", 0), ("blue", "sphere", 2)
    blank = np.full((COLUMNS, 64, 64, 3), 110, np.uint8)
    figure = sheet_of([[[left]] * COLUMNS, [[left, right]] * COLUMNS], [blank, blank])
    told = [panel.get_xlabel() for panel in figure.axes]
    assert told[0] == "a red cube on the left\n✗ 0 of 1"
    assert told[-1] == "a red cube on the left and\na blue sphere on the right\n✗ 0 of 2"


def test_equal_shares_in_a_row_are_told_once():
    shares = {3: 0.25, 4: 0.0, 5: 0.0, 7: 0.0, 8: 0.4}
    rows = [Row("length/exact", share, K=K) for K, share in shares.items()]
    told = ["25 % at K = 3", "0 % at K = 4 to 5", "0 % at K = 7", "40 % at K = 8"]
    assert by_number(rows, per_cent) == told
    assert by_number(rows)[1] == "0 at K = 4 to 5"


def test_docstrings_as_markdown():
    """Formulas, commands and what is aligned become code, arguments a list; prose stays."""
    prose = "Words: a = b is said here,\nand x -> y."
    parts = ["Title.", prose, "a = b + c", "composcope rows", "one   two\nthree   four"]
    parts += ["size: how large\n    it is.\nkeep: where.", "    set = apart"]
    title, same, formula, command, aligned, arguments, done = set_apart("\n\n".join(parts)).split(
        "\n\n"
    )
    assert (title, same, done) == ("Title.", prose, "    set = apart")
    assert (formula, command) == ("    a = b + c", "    composcope rows")
    assert aligned == "    one   two\n    three   four"
    assert arguments == "- `size`: how large\n    it is.\n- `keep`: where."


def test_results_of_nothing_say_so():
    text = page(Material()).text
    assert "not measured" in text and "Nothing is measured." in text


def test_a_table_as_markdown():
    lines = [
        [
            Html("<i class=dot style='x'></i><b>a|b</b>"),
            "",
            Verdict("✓", "p < q"),
            Html("<code>c &lt;d</code>"),
        ],
        [Html("<code>x | y</code>"), "", Html("<span><small>K 1</small> 0.5 [0, 1]</span>"), ""],
    ]
    made = table(Table(("run", "empty", "value*", "command"), lines, "A note.")).splitlines()
    assert made[6:] == [
        "",
        '<details markdown="1">',
        "<summary>The commands of these lines</summary>",
        "",
        "```sh",
        "c <d",
        "```",
        "",
        "</details>",
    ]
    assert made[:6] == [
        "A note.",
        "",
        r"| run | value\* |",
        "| --- | --- |",
        r"| **a\|b** | ✓ p &lt; q |",
        r"| `x \| y` | K 1: 0.5 [0, 1] |",
    ]


def test_a_command_of_several_lines_stands_once():
    lines = [[str(i), command_cell("composcope evaluate exp1 --num 4 -n 2")] for i in range(3)]
    made = table(Table(("K", "command"), lines))
    assert made.count("\ncomposcope evaluate exp1 --num 4 -n 2\n") == 1


def drawn_samples(run: str, intervention: str | None, missing: bool) -> Samples:
    Ks = (1, 3, 6, 9)
    asked = [list(PAPER_LOCATIONS[:K]) for K in Ks]
    met = [[not missing] + [True] * (K - 1) for K in Ks]
    found = [
        [place for place, there in zip(*one, strict=True) if there]
        for one in zip(asked, met, strict=True)
    ]
    about = {"run": run, "intervention": intervention, "snapshot": "final"}
    about["radius"] = LOCAL.radius if intervention else None
    images = np.zeros((4, 8, 8, 3), np.uint8)
    return Samples(about, images, Record(asked, met, found), images[:0], np.zeros(0))


def test_figure_1_counts_and_marks_what_is_missing():
    whose = (("exp1", None), ("exp2", None), ("exp2", "local"), ("exp2l", None))
    kept = [drawn_samples(*who, missing=who == ("exp2", None)) for who in whose]
    figure = figure_1(Material(samples=kept))
    under = [panel.get_xlabel() for panel in figure.axes]
    assert under[:4] == ["✓ 1 of 1", "✓ 3 of 3", "✓ 6 of 6", "✓ 9 of 9"]
    assert under[4:8] == ["✗ 0 of 1", "✗ 2 of 3", "✗ 5 of 6", "✗ 8 of 9"]
    assert [len(panel.lines) for panel in figure.axes[:8]] == [0] * 4 + [2] * 4
    assert figure.axes[4].lines[0].get_xydata().tolist() == [list(PAPER_LOCATIONS[0])]
    for panel in figure.axes:  # whole multiples of the 8 pixels that were drawn, at whole pixels
        box = panel.get_window_extent().extents
        assert np.allclose(box, box.round(), atol=1e-6)
        assert round(box[2] - box[0]) == round(box[3] - box[1]) == 256
    for words in figure.texts:  # no name of a model is cut
        assert words.get_window_extent().x0 >= 0
    assert figure_1(Material(samples=kept[:3])) is None


# ----------------------------------------------------------------------------
# What a reader copies or reads.


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.S)


def test_the_examples_of_your_model_run():
    names: dict = {}
    for code in blocks("your_model.md", "python"):
        exec(compile(code, "your_model.md", "exec"), names)
    assert len(names["rows"]) > 0
    assert names["pictures"].shape == (4, 16, 16, 3)
    assert names["report"].levels[0].influences.shape == (4, 2, 16, 16)
    assert {row.intervention for row in names["report"].rows()} == {"own"}


def commands() -> list[str]:
    """Those that stand on lines of their own, in blocks of code; tests/test_new_conditioner.py runs
    the longest of them."""
    found = []
    for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("cards/*.md")]):
        text = path.read_text().replace("\\\n", " ")
        fenced = "".join(re.findall(r"```sh\n(.*?)```", text, re.S))
        indented = "\n".join(re.findall(r"^    (composcope .*)$", text, re.M))
        found += re.findall(r"^composcope .*$", f"{fenced}\n{indented}", re.M)
    return sorted({*found})


@pytest.mark.parametrize("line", commands())
def test_commands_are_commands(line):
    name, *words = shlex.split(line, comments=True)[1:]
    arguments(module_of(name), name, words)


def sentences_of_the_code() -> str:
    """All that the package can say, one piece of text a line."""
    found = []
    for path in ROOT.glob("composcope/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_questions_quote_what_the_program_says():
    """The parts of every quotation between its dots stand in the code."""
    said = sentences_of_the_code()
    quotations = re.findall(r'"([^"]{20,})"', " ".join((DOCS / "faq.md").read_text().split()))
    parts = [part.strip() for text in quotations for part in text.split("...")]
    assert len(parts) > 10
    assert not [part for part in parts if part not in said]


def test_the_tree_is_there():
    lines = (DOCS / "architecture.md").read_text().partition("## Tree")[2].partition("##")[0]
    named = [
        word for line in lines.split("\n") for word in re.split("  +", line.strip())[0].split()
    ]
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists()]


def test_all_that_ships_stands_in_the_table_of_rows():
    """Claims of theory have names of their own."""
    lines = (DOCS / "architecture.md").read_text().partition("| what |")[2].partition("##")[0]
    listed = set()
    for line in lines.strip().split("\n")[2:]:
        room, _, names = line.split("|")[1].strip().partition("/")
        listed |= {f"{room}/{name}" for name in names.split(", ")}
    measured = {row.what for row in gather([SHIPPED]) if row.room not in ("theory", "sim")}
    assert len(measured) > 30 and not measured - listed


# ----------------------------------------------------------------------------
# The site.


@pytest.mark.skipif(find_spec("mkdocstrings") is None, reason="the extra `docs` is not installed")
def test_the_site_is_built_and_needs_nothing_from_elsewhere(tmp_path):
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for file in tmp_path.rglob("*.html"):
        fetched = re.findall(
            r'<(?:script|img|iframe)[^>]* src="([^"]*)"|<link[^>]* href="([^"]*)"', file.read_text()
        )
        addresses = {"".join(pair) for pair in fetched}
        assert not [address for address in addresses if re.match(r"(https?:)?//", address)], file
    assert "pixel_gradient" in (tmp_path / "api" / "locality.html").read_text()
    names = (tmp_path / "api.html").read_text()
    assert all(f'.{name}"><code>{name}(' in names for name in composcope.__all__)  # links
    assert (tmp_path / "composcope" / "models" / "exp1" / "sheet.png").exists()
