"""The page holds what it was given and nothing from outside; commands on it are commands."""

import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser
from importlib.util import find_spec
from math import erf, sqrt

import numpy as np
import pytest
from matplotlib.transforms import Bbox
from same_process import composcope

from composcope.cli import arguments, module_of
from composcope.errors import InputError
from composcope.report import tables
from composcope.report.commands import command
from composcope.report.drawing import multiple, style
from composcope.report.every_number import every_number
from composcope.report.figures import growth
from composcope.report.marks import EXP1, EXP2_LOCAL, two
from composcope.report.material import Material, material
from composcope.report.page import NO_PLACES, SECTIONS, difference_verdict, page, side_by_side
from composcope.report.recording import square
from composcope.report.section_figures import GROWING
from composcope.report.sections import known_sides
from composcope.results import Row, add_rows, write_arrays
from composcope.results.samples import Record, Samples, write_samples
from composcope.runs.model import SHIPPED
from composcope.study.effects import Side
from composcope.study.table import INTERVENTIONS, LOCAL, Intervention, chosen

MODEL = {"snapshot": "final", "trained": 3, "asked": "paper"}
MODEL |= {"steps": 12, "seed": 0, "images": 1000}
ENDS = {"low": 1.0, "high": 9.0, "n": 48}


def rows_of(run, nine, **more):
    about = {"run": run, **MODEL, "tolerance": 0.1, **more}
    found = [Row("length/found", min(K, nine), K=K, **ENDS, **about) for K in range(10)]
    return [*found, Row("length/k_max", int(nine), rule="paper", max_K=9, **ENDS, **about)]


def samples_of(run, met=(True, False), side=16, **about):
    places = [(0.25, 0.25), (0.75, 0.75), (0.5, 0.5)]
    images = np.full((2, side, side, 3), 90, np.uint8)
    record = Record([places[:1], places], [[True], [*met, True]], [[(0.2, 0.2)], places], places)
    return Samples(
        {"run": run, "snapshot": "final", **about}, images, record, images, np.array([80.0, 0.0])
    )


class Checker(HTMLParser):
    """All tags with their attributes; and that those which need an end have one."""

    def __init__(self):
        super().__init__()
        self.tags = []
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("section", "details", "figure", "table", "button", "div", "ul", "main"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in ("section", "details", "figure", "table", "button", "div", "ul", "main"):
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text():
    values = {"exp1": 8.0, "exp2": 2.0, "mine": 5.0, "<other>": 6.0}
    rows = [row for run, value in values.items() for row in rows_of(run, value)]
    mended = rows_of("exp2", 7.0, intervention=LOCAL.name, radius=LOCAL.radius)
    shown = [samples_of("exp1"), samples_of("exp2", (False, False)), samples_of("mine")]
    return page(Material([*rows, *mended], shown), compare=["mine", "<other>"])


def test_the_page_is_well_formed_and_from_nowhere_else(text):
    checker = Checker()
    checker.feed(text)
    assert not checker.open
    addresses = [
        attrs[name]
        for _, attrs in checker.tags
        for name in ("src", "href", "xlink:href")
        if attrs.get(name)
    ]
    assert addresses and all(address.startswith(("#", "data:image/")) for address in addresses)
    assert "<other>" not in text
    ids = [attrs["id"] for _, attrs in checker.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_every_picture_has_words(text):
    checker = Checker()
    checker.feed(text)
    images = [attrs for tag, attrs in checker.tags if tag == "img"]
    drawings = [attrs for tag, attrs in checker.tags if tag == "svg" and "xmlns" in attrs]
    assert images and all(attrs["alt"] for attrs in images)
    assert drawings and all(attrs["role"] == "img" and attrs["aria-label"] for attrs in drawings)


def test_figure_1_counts_what_is_there(text):
    first = text[: text.index("<section")]
    assert first.count("not drawn") == 12  # of 16 pictures two models have K = 1 and 3 each
    assert re.findall(r"<figcaption><b>(.)</b> ([^<]*)<", first) == [
        ("✓", "1 of 1"),
        ("✗", "2 of 3, +1"),
        ("✓", "1 of 1"),
        ("✗", "1 of 3, +2"),
    ]


def test_pictures_are_of_the_radius_and_the_places_they_stand_for():
    """A study draws exp2 with local conditions of several radii, and exp1 at random places too."""
    near = {"intervention": LOCAL.name, "radius": LOCAL.radius}
    wider = samples_of("exp2", **{**near, "radius": 0.275})
    local = samples_of("exp2", **near)
    scattered = samples_of("exp1", asked="random")
    paper = samples_of("exp1", asked="paper")
    found = Material(samples=[wider, local, scattered, paper])
    assert found.samples_of(EXP2_LOCAL) is local and found.samples_of(EXP1) is paper
    assert Material(samples=[scattered]).samples_of(EXP1) is scattered
    assert Material(samples=[wider]).samples_of(EXP2_LOCAL) is None


def test_a_run_of_ones_own_stands_in_the_tables_as_it_was_measured():
    local = rows_of("mine", 7.0, intervention=LOCAL.name, radius=LOCAL.radius)
    study = known_sides(Material())
    assert known_sides(Material(local))[len(study) :] == [Side("mine", LOCAL)]
    both = known_sides(Material([*rows_of("mine", 5.0), *local]))
    assert both[len(study) :] == [Side("mine"), Side("mine", LOCAL)]


def test_a_question_a_section(text):
    assert re.findall("<section id=([a-z]+)>", text) == [
        "compared",
        *(section.name for section in SECTIONS),
        "moved",
    ]
    assert "mine beside &lt;other&gt;" in text and "&lt;other&gt;, intervals overlap" in text


def test_runs_side_by_side_that_were_judged_otherwise_say_so():
    strict = Row("length/found", 5.0, K=9, run="a", tolerance=0.1, images=8)
    lenient = replace(strict, value=6.0, run="b", tolerance=0.2, images=9)
    words = "b, intervals apart; not at equal terms: tolerance 0.1 against 0.2"
    assert difference_verdict([strict, lenient]).words == words
    assert difference_verdict([strict, replace(strict, run="b", images=9)]).words == "equal"


def test_what_does_not_apply_to_words_is_not_called_not_measured():
    local = Row("locality/conditional_locality", 0.9, run="mine", snapshot="final")
    acts = Row("locality/overlap", 0.5, run="words", snapshot="final")
    colours = Row("length/found", 2.0, K=3, run="colours", snapshot="final")
    drawn = Row("length/found", 2.0, K=3, run="drawn", snapshot="final", tolerance=0.1)
    for other, told in ((acts, NO_PLACES), (colours, NO_PLACES), (drawn, "not measured")):
        shown = side_by_side(Material([local, other]), ["mine", other.run])
        (line,) = re.findall("<tr>(?:(?!</tr>).)*conditional locality.*?</tr>", shown)
        assert told in line and ("does not apply" in line) == (told == NO_PLACES)


def test_with_nothing_measured_the_page_says_so():
    empty = page(Material())
    assert empty.count("not measured") > 5 and empty.count("not drawn") == 16
    with pytest.raises(InputError, match="nothing is measured"):
        page(Material(rows_of("exp1", 8.0)), compare=["exp1", "nowhere"])


def test_two_runs_of_one_name_are_not_compared():
    with pytest.raises(InputError, match="rows of both have the name mine"):
        page(Material(rows=[Row("length/found", 5.0, K=9, run="mine")]), ["mine", "mine"])


def test_material_is_found_whatever_its_folders_are_called(tmp_path):
    add_rows(tmp_path / "own" / "a" / "any.jsonl", rows_of("exp1", 8.0))
    write_samples(tmp_path / "own" / "b" / "samples.npz", samples_of("exp1"))
    curves = [tmp_path / "own" / "sim", tmp_path / "ships" / "sim"]
    for folder in curves:
        folder.mkdir(parents=True)
    found = material(tmp_path / "ships", [tmp_path / "own"])
    assert found.toys["sim"] == curves  # what one of them does not have, the next may have
    assert len(found.rows) == 11 and [one.about["run"] for one in found.samples] == ["exp1"]


def test_pictures_of_weights_that_made_room_for_others_go_too(tmp_path):
    """exp2 of one's own beside the shipped pictures of exp2 with local conditions."""
    about = {"run": "exp2", "snapshot": "final", "weights": "theirs"}
    near = {"intervention": LOCAL.name, "radius": LOCAL.radius}
    add_rows(tmp_path / "shipped" / "rows.jsonl", rows_of("exp2", 2.0, weights="theirs"))
    write_samples(tmp_path / "shipped" / "samples.npz", samples_of(**about, **near))
    write_arrays(tmp_path / "shipped" / "maps.npz", about, {"sigmas": np.ones(1)})
    before = material(tmp_path / "shipped", [tmp_path / "own"])
    assert len(before.samples) == len(before.maps) == 1
    add_rows(tmp_path / "own" / "rows.jsonl", rows_of("exp2", 3.0, weights="ours"))
    write_samples(tmp_path / "own" / "samples.npz", samples_of("exp2", weights="ours"))
    after = material(tmp_path / "shipped", [tmp_path / "own"])
    assert [one.about["weights"] for one in after.samples] == ["ours"] and not after.maps


def test_figures_of_other_models_are_drawn_from_what_is_kept():
    """A figure for the maps of a model that is not of the study; one for the words of a prompt."""
    maps = {
        "sigmas": np.array([2.0, 0.5]),
        "pictures": np.zeros((2, 8, 8, 3), np.uint8),
        "gradients": np.ones((2, 1, 8, 8), np.float16),
        "influences": np.ones((2, 1, 8, 8), np.float16),
        "pixels": np.array([[2, 3]]),
        "places": np.array([[0.5, 0.5]]),
        "conditions": np.array(["cat"]),
    }
    words = [
        Row("locality/influence", 1.0, run="text", sigma=sigma, pixel=(2, 3), condition="cat")
        for sigma in (2.0, 0.5)
    ]
    third = Row("features/share_in_third", 0.5, run="text", sigma=2.0, condition="cat")
    own = page(Material([*words, third], maps=[({"run": "text"}, maps), ({"run": "exp1"}, maps)]))
    assert own.count("text: what pixels look at") == 2  # the words under it and its description
    assert "exp1: what pixels look at" not in own
    assert "The influence of each word at two places" in own
    assert "The influence of each word at two places" not in page(Material(words))


@pytest.fixture(scope="module")
def figures():
    """All figures of the page, from what ships."""
    found = material(SHIPPED, [])
    with style():
        drawn = [shown.figure for section in SECTIONS for shown in section.figures(found)]
    for figure in drawn:
        figure.draw_without_rendering()
    return drawn


def common(one, other):
    """The area, in square pixels, that two boxes share."""
    box = Bbox.intersection(one, other)
    return box.width * box.height if box else 0.0


def test_legends_cover_nothing(figures):
    """Neither lines nor titles; and none sticks out of its figure."""
    legends = 0
    for figure in figures:
        for legend in filter(None, [*(axes.get_legend() for axes in figure.axes), *figure.legends]):
            box = legend.get_window_extent()
            assert common(box, figure.bbox) > 0.99 * box.width * box.height
            for axes in figure.axes:
                assert common(box, axes.bbox) < 1
                assert not axes.get_title() or common(box, axes.title.get_window_extent()) < 1
            legends += 1
    assert legends > 15


def test_axes_name_their_quantities(figures):
    """Unless they have no ticks, as pictures, or ticks that are names."""
    for figure in figures:
        for axes in (axes for axes in figure.axes if axes.axison):
            if len(axes.get_xticks()):
                assert axes.get_xlabel() or figure.get_supxlabel()
            names = all(label.get_text()[:1].isalpha() for label in axes.get_yticklabels())
            assert names or axes.get_ylabel() or figure.get_supylabel()


def test_figure_8_has_a_point_for_each_run_beside_the_papers():
    """Of rows that are made here: K_max by two rules, the paper's, and places filled."""
    runs = {"exp1-one": 2.0, "exp1-two": 5.0, "exp1": 7.0, "exp1-six": 8.0}
    rows = [row for run, nine in runs.items() for row in rows_of(run, nine)]
    kinds = [replace(row, rule=rule) for row in rows if row.rule for rule in ("strict", "eight")]
    figure = growth([*rows, *kinds], GROWING)
    reached, filled = figure.axes
    bars = [len(panel.containers) for panel in (reached, filled)]
    assert bars == [2 * len(runs), len(runs)]
    points = sorted(tuple(one[0].get_xydata()[0]) for one in filled.containers)
    assert points == [(1, 2.0), (2, 5.0), (3, 7.0), (6, 8.0)]
    paper = {line.get_marker(): line.get_xydata() for line in reached.lines if line.get_label()}
    assert paper["D"][:, 1].tolist() == [1, 5, 9, 10, 10, 11] and paper["*"].tolist() == [[3, 7]]
    assert growth(rows_of("exp1", 7.0), GROWING) is None


def test_where_others_are_told_the_paper_is_compared_by_places_alone():
    """exp2l of the paper has 9+(0-2): by its places ours agrees, by the harsher reading it does not."""
    harsh = Row("length/k_max", 0, 0, 1, rule="paper", max_K=12, run="exp2l", **MODEL)
    places = replace(harsh, value=8, low=6, high=9, rule="places")
    others = [Row("length/most_extra", K, K=K, run="exp2l", **MODEL) for K in (0, 1, 2, 3, 8, 9)]
    alone = tables.length_line([harsh], Side("exp2l"))
    both = tables.length_line([harsh, places, *others], Side("exp2l"))
    assert (alone["agrees?"].mark, both["agrees?"].mark) == ("▼", "✓")
    assert alone["K_max by places alone [95 %]"] == ""
    assert both["K_max by places alone [95 %]"] == "8 [6, 9], up to 8 extras"
    assert both["K_max [95 %]"] == "0 [0, 1]"
    few = tables.length_line([harsh, places, others[-1]], Side("exp2l"))  # only K = 9 was asked
    assert few["K_max by places alone [95 %]"] == "8 [6, 9]"


def test_every_intervention_of_exp2_has_a_line_with_what_it_fills():
    near = {"intervention": LOCAL.name, "radius": LOCAL.radius}
    rows = [*rows_of("exp2", 2.0), *rows_of("exp2", 7.0, **near)]
    rows += rows_of("exp2", 5.0, intervention="composed")
    shown = tables.interventions(rows)
    assert {done.name for done in INTERVENTIONS} == {*tables.GIVEN}
    values = {None: 2, LOCAL: 7, Intervention("composed"): 5}
    wanted = [values.get(done) for done in (None, *INTERVENTIONS)]
    filled = [line[3] for line in shown.lines]
    assert filled == [f"{two(x)} [1, 9]" if x else "not measured" for x in wanted]
    assert "composcope evaluate exp2 --intervention composed" in str(shown).replace("<span>", "")


def test_no_picture_ships_but_samples():
    assert {path.name for path in SHIPPED.rglob("*.png")} <= {"sheet.png"}


@pytest.mark.parametrize(
    ("side", "width"), [(64, 128), (32, 128), (128, 128), (48, 144), (200, 200)]
)
def test_pictures_are_whole_multiples(side, width):
    assert multiple(side) == width


@pytest.mark.parametrize(
    "rows",
    [
        rows_of("exp1", 8.0),
        rows_of("exp2", 8.0, intervention=LOCAL.name, radius=LOCAL.radius),
        [*rows_of("exp1", 8.0), Row("length/evaluations", 1, run="exp1", K=12, **MODEL)],
        [
            Row(
                "locality/square",
                3.0,
                n=16,
                run="a run",
                states="noised",
                **{**MODEL, "steps": None},
            )
        ],
        [Row("features/between", 0.1, n=100, run="color", snapshot="early", layer="x", index=0)],
        [Row("features/between", 0.1, n=10, run="text_control", setting="guidance 5", layer="x")],
        [Row("locality/square", 3.0, n=1, run="text_control", setting='"a red cube", guidance 5')],
        [Row("locality/square", 3.0, n=4, run="my_model.py:denoiser", states="noised")],
        [Row("locality/overlap", 0.1, run="my.py:net", states="noised", asked="given")],
        [Row("theory/lemma1/length", 1.0, claim="some", holds=True)],
        [Row("circles/accuracy", 0.5, n=32, run="circles", contrast=0.5, images=16000, seed=1)],
    ],
)
def test_commands_are_commands(rows, monkeypatch):
    """Every one is read by the command's own parser, and says what the rows say."""
    program, name, *rest = shlex.split(command(rows))
    assert program == "composcope"
    args = arguments(module_of(name), name, rest)
    row = rows[0]
    told = {"run": row.run, "snapshot": row.snapshot, "num": row.n}
    told |= {"steps": row.steps, "contrast": row.contrast}
    told |= {"tolerance": row.tolerance, "intervention": row.intervention, "states": row.states}
    for coordinate, value in told.items():
        if value is not None and hasattr(args, coordinate) and name != "features":
            assert getattr(args, coordinate) == value, coordinate
    assert row.run in (None, "circles") or shlex.quote(row.run) in command(rows)
    assert (name == "audit") == (":" in (row.run or ""))


def test_given_conditions_and_noise_levels_are_told_where_all_rows_of_a_call_are_known():
    call = {"run": "exp1", "snapshot": "final", "states": "trajectory", "asked": "given"}
    whole = Row("locality/conditional_locality", 0.9, n=4, **call)
    acts = [
        Row("locality/influence", 1.0, n=4, sigma=sigma, condition=condition, pixel=(1, 2), **call)
        for sigma in (80.0, 0.1)
        for condition in ("0.65,0.65", "0.35,0.35")
    ]
    _, name, *rest = shlex.split(command([*acts, whole]))
    args = arguments(module_of(name), name, rest)
    assert (args.asked, args.noise_levels, args.num) == ("0.65,0.65 0.35,0.35", 2, 4)
    assert command([whole]) == "composcope locality exp1 --num 4"
    words = [replace(whole, condition=name) for name in ("red cube", "red cube #2")]
    assert "--asked 'red cube, red cube'" in command(words)


def test_what_was_measured_in_python_is_told_no_command():
    """A drawer of one's own: its rows have no snapshot."""
    for what in ("length/found", "locality/square"):
        assert command([Row(what, 3.0, n=4, K=2, run="mine", asked="paper")]) == ""
    given = {"asked": "given", "setting": "asked for red"}
    assert command([Row("locality/square", 3.0, run="mine", **given)]) == ""
    audited = {"states": "noised", "setting": "on images 0123abcd"}
    assert command([Row("locality/square", 3.0, run="mine", **audited)]) == ""
    assert command([Row("length/found", 3.0, run="ideal machine")]).endswith("score_machines")


def test_moments_of_one_training_are_one_line_under_one_command():
    where = {"run": "circles", "contrast": 0.5, "seed": 1, "concept": "size"}
    early = Row("circles/accuracy", 0.15, step=15, images=960, **where)
    shown = every_number([early, replace(early, value=0.3, step=30, images=1920)])
    assert shown.count("<h4>") == 1 and "--images 1920" in shown
    assert shown.count("<tr>") == 2  # titles and one line
    assert shown.index("step 15</small> 0.15") < shown.index("step 30</small> 0.30")


def test_each_radius_of_an_intervention_has_its_command():
    near = rows_of("exp2", 5.0, intervention="local", radius=0.125)
    shown = every_number([*near, *rows_of("exp2", 5.0, intervention="local", radius=0.275)])
    assert re.findall(r"--radius [\d.]+", shown) == ["--radius 0.125", "--radius 0.275"]


@pytest.mark.parametrize("room", ["overlap", "penalty", "predict", "text", "training"])
def test_commands_of_experiments_are_modules(room):
    python, option, module = command([Row(f"{room}/found", 1.0, run="exp1")]).split()
    assert (python, option) == ("python", "-m") and find_spec(module)


@pytest.mark.parametrize("run", tables.PLAIN_IMAGES)
def test_commands_of_models_of_plain_images_train_them(run):
    """Their weights do not ship."""
    row = Row("locality/square", 3.0, run=run, snapshot="final", states="noised")
    _, _, module, *data = command([row]).split()
    assert find_spec(module) and module.endswith(".centred_subject")
    assert data == ([] if run == "centred" else ["--data", f"{run}.npz"])


@pytest.mark.parametrize(
    ("run", "snapshot", "path"),
    [
        ("exp1", "final", "exp1"),
        ("exp1", "early", "study/laptop/runs/exp1"),
        ("exp1-seed1", "final", "study/laptop/runs/exp1-seed1"),
        ("exp2-penalty", "final", "runs/penalty/exp2-penalty"),
        ("mine", "final", "mine"),
    ],
)
def test_commands_name_weights_where_they_are(run, snapshot, path):
    row = Row("length/found", 5.0, n=8, K=6, run=run, snapshot=snapshot, asked="paper")
    assert command([row]).startswith(f"composcope evaluate {path} ")
    inside = replace(row, what="features/between", K=None, asked=None)
    assert command([inside]).startswith(f"composcope features {path} ")


def test_what_to_do_about_a_section_is_a_command():
    """What is not measured says which command measures it."""
    told = [
        found for one in SECTIONS for found in re.findall("composcope ([a-z]+ .+) does", one.none)
    ]
    assert len(told) >= 4
    for words in told:
        name, *rest = shlex.split(words)
        args = arguments(module_of(name), name, rest)
        if name == "reproduce":
            assert [run.name for run in chosen(args.only.split(","))] == args.only.split(",")


def test_the_command_makes_the_page(tmp_path, monkeypatch, capsys):
    add_rows(tmp_path / "results" / "evaluate.jsonl", rows_of("mine", 8.0))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("composcope.cli.report.SHIPPED", tmp_path / "none")
    composcope("report")
    assert "11 rows -> report/index.html" in capsys.readouterr().out
    assert "mine" in (tmp_path / "report" / "index.html").read_text()
    with pytest.raises(SystemExit) as end:
        composcope("report", "--compare", "mine", "other", "--out", "two")
    assert end.value.code == 2 and "--compare other" in capsys.readouterr().err
    assert not (tmp_path / "two").exists()
    add_rows(tmp_path / "study" / "laptop" / "results" / "evaluate.jsonl", rows_of("exp1", 8.0))
    composcope("report", "--study", "study/laptop", "--out", "pages/mine.html")
    assert [path.name for path in (tmp_path / "pages").iterdir()] == ["mine.html"]
    assert "22 rows" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        composcope("report", "--study", "study")
    assert "such as study/laptop" in capsys.readouterr().err


def test_the_square_of_a_gradient_that_is_known():
    """Of a Gaussian of width 4, from the error function."""
    at = np.arange(129) - 64
    gradient = np.exp(-(at[:, None] ** 2 + at**2) / (4 * 4.0**2))  # its square has width 4
    reach = (square(gradient, (64, 64)) - 1) / 2
    held = [erf((r + 0.5) / (4 * sqrt(2))) ** 2 for r in (reach - 1, reach)]
    assert held[0] < 0.9 <= held[1]


def test_runs_asked_for_random_places_are_shown_beside_the_usual_ones():
    def exact(run: str, asked: str, K: int, value: float) -> Row:
        how = {"snapshot": "final", "asked": asked, "tolerance": 0.1, "weights": "w"}
        return Row("length/exact", value, n=48, run=run, K=K, **how)

    rows = [exact("exp3", "paper", 1, 0.5), exact("exp3", "random", 1, 0.96)]
    rows += [exact("exp3", "random", 2, 0.964), exact("exp1", "paper", 1, 1.0)]
    shown = tables.other_places(rows, [Side("exp1"), Side("exp3")])
    assert [line[1:3] for line in shown.lines] == [
        ["the paper's", "50 % at K = 1"],
        ["random", "96 % at K = 1 to 2"],
    ]
    assert "--way random" in str(shown)
