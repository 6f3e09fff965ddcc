"""The README keeps its word: its links lead somewhere, its numbers are measured, its commands and
examples run."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from same_process import typed

from composcope import rows
from composcope.evaluation.detect import detector_of
from composcope.report.locality import correlation, dots
from composcope.report.looks import DONE
from composcope.results import gather
from composcope.runs.model import SHIPPED

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def measured():
    """Rows with these coordinates; all are read once."""
    every = rows()

    def having(**coordinates):
        return [row for row in every if coordinates.items() <= row.items()]

    return having


def test_it_can_be_finished():
    lines = README.splitlines()
    assert len(lines) <= 170
    assert max(map(len, lines)) <= 120


def test_links_lead_somewhere():
    links = re.findall(r"\[[^\]]*\]\(([^)#:]+)\)", README)
    assert len(links) > 3
    missing = [path for path in links if not (ROOT / path).exists()]
    assert not missing


def test_the_numbers_are_those_of_the_rows(measured):
    """Of each line of the table: the run, what is done to it, K_max by four rules and places filled,
    with their intervals; and that all runs saw as many images as the text says."""
    table = README.split("| filled of 9 |")[1].split("\n\n")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert len(lines) == 6
    usual = {"asked": "paper", "snapshot": "final", "tolerance": 0.1}
    for name, _, _, *told, filled in lines:
        run, _, words = name.partition(" + ")
        done = {"intervention": {said: done for done, said in DONE.items()}.get(words)}
        done |= {"radius": 0.1875} if words else {}
        of_run = {"run": run, **done, **usual}
        for rule, cell in zip(("eight", "paper", "places", "strict"), told, strict=True):
            found = measured(what="length/k_max", rule=rule, **of_run)
            assert [cell] == ([with_ends(row, "g") for row in found] or ["-"])
        (places,) = measured(what="length/found", K=9, **of_run)
        assert filled == with_ends(places, ".1f")
        if run != "exp2-student":
            assert f"{places['images']:,} images" in README


def with_ends(row, form):
    return f"{row['value']:{form}} [{row['low']:{form}}, {row['high']:{form}}]"


def test_the_numbers_at_equal_images_are_those_of_the_rows(measured):
    table = README.split("| filled of 6 |")[1].split("\n\n")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert len(lines) == 14
    usual = {"intervention": None, "images": 64_000}
    for run, _, *told in lines:
        (filled,) = measured(
            what="length/found", K=6, run=run, asked="paper", tolerance=0.1, **usual
        )
        (local,) = measured(what="locality/conditional_locality", run=run, **usual)
        words = [
            f"{row['value']:.{digits}f} [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
            for row, digits in ((filled, 1), (local, 2))
        ]
        assert told == words
    counted = {
        run: measured(what="length/found", K=6, run=run, asked="paper", **usual)[0]["detector"]
        for run, *_ in lines
    }
    ours = detector_of(np.zeros((1, 64, 64, 3), np.uint8))
    assert {run for run, detector in counted.items() if detector == ours} == {"exp3s"}
    assert "All of the table but exp3s were counted by an earlier detector" in " ".join(
        README.split()
    )


def test_what_is_said_of_the_list_is_measured(measured):
    text = " ".join(README.split())
    end = {"run": "exp3", "images": 512_000, "intervention": None}
    (local,) = measured(what="locality/conditional_locality", asked="paper", **end)
    assert f"The locality of exp3 is then {with_ends(local, '.2f')};" in text
    for K, words in ((3, "three random places, {} of its images"), (5, "with five {}.")):
        (right,) = measured(what="length/exact", K=K, asked="random", **end)
        assert words.format(percent(right)) in text
    told = []
    for images, run in product((256_000, 512_000), ("exp3", "exp3l")):
        about = {"asked": "paper", "run": run, "images": images, "intervention": None}
        (nine,) = measured(what="length/found", K=9, **about)
        told.append(with_ends(nine, ".1f"))
    half, patches, whole, whole_patches = told
    assert f"256,000 images exp3 fills {half} of 9, in patches (exp3l) {patches}; after" in text
    assert f"after 512,000 these are {whole} and {whole_patches}." in text


def percent(row) -> str:
    return "{:.0f} [{:.0f}, {:.0f}] %".format(*(100 * row[end] for end in ("value", "low", "high")))


def test_what_is_said_of_exact_images_is_measured(measured):
    about = {"run": "exp1", "images": 256_000, "asked": "paper", "tolerance": 0.1}
    about |= {"intervention": None}
    four, six = (measured(what="length/exact", K=K, **about)[0] for K in (4, 6))
    words = f"four objects, {percent(four)} of exp1's images are exactly right; with six, {percent(six)}"
    assert words in " ".join(README.split())


def test_what_is_said_of_the_objects_in_training_is_measured(measured):
    filled = [
        measured(what="length/found", K=9, run=run, asked="paper", images=64_000)[0]
        for run in ("exp1-two", "exp1", "exp1-four", "exp1-five", "exp1-six")
    ]
    told = ["{value:.1f} [{low:.1f}, {high:.1f}]".format(**row) for row in filled]
    words = f"fill {', '.join(told[:-1])} and {told[-1]} of 9 places"
    text = " ".join(README.split())
    assert words in text
    longer = {"run": "exp1-five", "asked": "paper", "images": 256_000, "tolerance": 0.1}
    (nine,) = measured(what="length/found", K=9, **longer)
    (reached,) = measured(what="length/k_max", rule="paper", **longer)
    assert "256,000 images, {value:.1f} [{low:.1f}, {high:.1f}],".format(**nine) in text
    assert (
        "with a K_max of {value:.0f} [{low:.0f}, {high:.0f}] (paper: 10)".format(**reached) in text
    )


def test_the_times_are_those_of_the_logs():
    runs = ("exp1", "exp2", "exp2l", "exp2-student")
    cards = [(ROOT / "docs" / "cards" / f"{run}.md").read_text() for run in runs]
    one, two, patches, student = (
        re.findall(r"\| time \| (\d+) minutes", card)[0] for card in cards
    )
    text = " ".join(README.split())
    assert one == two and f"{one} minutes on one shared core, exp2l for {patches}." in text
    assert f"no images and took {student} minutes" in text


def test_the_faults_are_those_of_the_benchmark():
    table = (ROOT / "docs" / "benchmarks.md").read_text()
    kills, bad = (
        sum(
            int(count.replace(",", ""))
            for count in re.findall(rf"^\| ([\d,]+) {what}", table, re.M)
        )
        for what in ("kills of", "bad ")
    )
    text = " ".join(README.split())
    assert f"{kills} kills, 0 lost" in text and f"{bad:,} bad command lines and files" in text


def test_what_is_said_of_all_models_is_measured():
    points = dots(gather([SHIPPED]), "filled")
    found = correlation(points)
    text = " ".join(README.split())
    assert f"Over {len(points)} models, counting" in text
    assert f"the rank correlation of the two is {found}." in text


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_the_commands_run_in_the_order_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) > 5
    for line in commands:
        typed(line)
    assert (tmp_path / "scenes" / "CLEVR_scenes.json").exists()
    assert (tmp_path / "report" / "index.html").stat().st_size < 8e6  # two runs side by side in it


def test_the_examples_are_short():
    """The headline in at most twelve lines, an own model in ten."""
    lengths = [len([line for line in code.splitlines() if line]) for code in blocks("python")]
    assert lengths[0] <= 12 and lengths[1] <= 10


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.split()[1])
def test_the_examples_run(code):
    exec(compile(code, "README.md", "exec"), {})
