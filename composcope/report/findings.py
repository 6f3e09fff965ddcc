"""What the rows say beside the paper: tables and sentences, none of which knows the result beforehand.

study (rows, and what the paper has for each run) -> [Table(head, lines), sentence, ...]    for each part
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from composcope.report.locality import edges
from composcope.results import Row

Cell = str | tuple[str, str]  # words, or how they compare (agree, differ, none) and the words
K_MAX, LOCALITY = "length/k_max_paper", "locality/conditional_locality"


@dataclass(frozen=True)
class Table:
    head: Sequence[str]
    lines: Sequence[Sequence[Cell]]


Told = list[Table | str]


@dataclass(frozen=True)
class Expected:
    """A run of the study, measured or not: what it is trained on, and the K_max of the paper."""

    run: str
    trained: str = ""
    paper: str = ""


@dataclass(frozen=True)
class Study:
    """All that was measured. `shipped`: the (room, run) whose rows come with the package."""

    rows: Sequence[Row]
    expected: Sequence[Expected] = ()
    shipped: frozenset[tuple[str, str]] = frozenset()

    def of(self, run: str, snapshot: str = "final", K: int | None = None) -> dict[str, Row]:
        """A run's rows by claim, at the paper's places; of claims with many rows that of K, or the last.

        What is told of its images is all of one evaluation, the last.
        """
        own = [row for row in self.rows if row.run == run and row.setting.get("conditions") != "random"]
        own = [row for row in own if row.setting.get("snapshot", "final") == snapshot]
        last = [one_evaluation(row) for row in own if row.claim == K_MAX][-1:]
        own = [row for row in own if not (last and row.claim.startswith("length/")) or one_evaluation(row) in last]
        return {row.claim: row for row in own if K in (None, row.setting.get("K", K))}

    def origin(self, room: str, run: str) -> str:
        return "shipped" if (room, run) in self.shipped else "here"

    def there(self, run: str) -> Row | None:
        """Of nine asked objects, how many are found at their places: this says more than a K_max of 0."""
        return self.of(run, K=9).get("length/found")

    def runs(self, claim: str) -> list[str]:
        return list(dict.fromkeys(row.run for row in self.rows if row.claim == claim))

    def named(self, run: str) -> Expected:
        """What is expected of a run; one with an intervention is trained as it is without, and not in the paper."""
        known = {one.run: one for one in self.expected}
        return known.get(run) or Expected(run, known.get(plain(run), Expected(run)).trained)


def plain(run: str) -> str:
    """The run without what was done to it afterwards: an intervention, another tolerance."""
    return re.split(r"\+| within ", run)[0]


def one_evaluation(row: Row) -> tuple:
    return {**row.setting, "K": None}, row.seed


@dataclass(frozen=True)
class Effect:
    """A finding as a comparison: `claim` of the run `above` is larger than that of `below`."""

    where: str
    says: str
    above: str
    below: str
    claim: str = K_MAX


EFFECTS = (
    Effect("Fig. 1", "A grid of all locations composes further than one with a single label", "exp1", "exp2"),
    Effect("Fig. 1 (v3)", "A grid composes further than a list of locations", "exp1", "exp3"),
    Effect("Fig. 1", "A patch-local network composes where the global one did not", "exp2l", "exp2"),
    Effect("Table 1 (v3)", "The same with a list of locations", "exp3l", "exp3"),
    Effect("Fig. 4", "Trained on single objects, the patch-local network still draws more", "exp2l-one", "exp1-one"),
    Effect("Fig. 8", "Trained on up to five objects a model goes further than on up to three", "exp1-five", "exp1"),
    Effect("E.3", "Patches as wide as the image fail again", "exp2l", "exp2l-wide"),
    Effect("E.3", "The same, trained on single objects", "exp2l-one", "exp2l-wide-one"),
    Effect("E.3", "The same without training", "local one-label machine", "ideal one-label machine"),
    Effect("Table 2", "All labels go further than a random number of them", "exp1", "random"),
    Effect("Table 2", "A random number of labels goes further than all but one", "random", "drop-one"),
    Effect("Table 2", "All but one label go further than a single one", "drop-one", "exp2"),
    Effect("ours", "Local conditions at sampling time mend a model that does not compose", "exp2+local", "exp2"),
    Effect("Fig. 2, 10", "The model that composes is conditionally local", "exp1", "exp2", LOCALITY),
    Effect("Fig. 2 (v3)", "The list model lacks that locality", "exp1", "exp3", LOCALITY),
    Effect("Fig. 2", "The patch-local network has it", "exp2l", "exp2", LOCALITY),
    Effect("Fig. 2", "The patch-local network has more of it than the list model", "exp2l", "exp3", LOCALITY),
)


def numbers(text: str) -> list[float]:
    """The values the paper gives for one thing: "9 (v3: 7)" has two, the extras in "9+(0-2)" are not among them."""
    plain = re.sub(r"\+\([^)]*\)", "", text).replace("v3:", "")
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", plain)]


def verdict(row: Row | None) -> tuple[str, str]:
    """(class, words): whether one of the paper's values lies in our interval, and if not, on which side ours is."""
    if row is None or row.paper is None:
        return "none", "not measured" if row is None else "not in the paper"
    theirs, (_, low, high) = numbers(str(row.paper)), edges(row)
    if any(low <= value <= high for value in theirs):
        return "agree", "agrees"
    if high >= row.setting.get("max", math.inf):  # of a K_max: the most that was asked for
        return "none", "not asked further"
    return "differ", "ours is lower" if high < min(theirs) else "ours is higher" if low > max(theirs) else "differs"


def compared(above: Row | None, below: Row | None) -> tuple[str, str]:
    """(class, words): is the first above the second?"""
    if above is None or below is None or None in (above.value, below.value):
        return "none", "not measured"
    (a, low, _), (b, _, high) = edges(above), edges(below)
    if a <= b:
        return "differ", "no"
    return ("agree", "yes, intervals apart") if low > high else ("none", "yes, but intervals overlap")


def number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def shown(row: Row | None) -> str:
    """A value with its 95 % interval: "7 [6, 8]"."""
    if row is None or row.value is None:
        return "not measured"
    return number(row.value) + ("" if row.low is None else f" [{number(row.low)}, {number(row.high)}]")


def reached(study: Study, run: str) -> str:
    row, there = study.of(run).get(K_MAX), study.there(run)
    if row is None:
        return "not measured"
    strict = study.of(run).get("length/k_max_strict")
    more = f", {shown(strict)} by the strict rule" if strict else ""
    more += f", and {shown(there)} of nine" if there else ""
    paper = f"paper {row.paper}: {verdict(row)[1]}" if row.paper else "not in the paper"
    others = [other for other in study.runs(K_MAX) if other.startswith(f"{run} within ")]
    more += "".join(f"; judged {other.removeprefix(run + ' ')}, {reached(study, other)}" for other in others)
    return f"draws what is asked up to {shown(row)} objects ({paper}){more}"


def summary(study: Study) -> list[str]:
    """Five sentences: what composes, what does not, what mends it, and whether locality goes with it."""
    found = {run: reached(study, run) for run in ("exp1", "exp2", "exp3", "exp2l", "exp2+local")}
    local = ", ".join(f"{run} {shown(study.of(run).get(LOCALITY))}" for run in ("exp1", "exp2l", "exp2", "exp3"))
    return [
        f"All objects labelled on a grid (exp1), trained on 1-3 objects: {found['exp1']}.",
        f"One object labelled (exp2): {found['exp2']}; a list of locations (exp3): {found['exp3']}.",
        f"The patch-local network (exp2l): {found['exp2l']}.",
        f"exp2 with local conditions at sampling time, without training: {found['exp2+local']}.",
        f"Conditional locality: {local}; {correlation(study)}.",
    ]


def correlation(study: Study) -> str:
    """Over all models and snapshots, and over those trained on 1-3 objects if they are not all."""
    what = "the rank correlation of locality with the gain in K_max"
    told: dict[int, str] = {}
    for run, kind in (("all", ""), ("1-3 objects", " trained on 1-3 objects")):
        found = {rule: study.of(run).get(f"locality/spearman_{rule}") for rule in ("paper", "strict")}
        known = [(rule, row) for rule, row in found.items() if row and row.value is not None]
        if known:
            words = " and ".join(f"{shown(row)} by the {rule} rule" for rule, row in known)
            dots = known[0][1].setting["dots"]
            told.setdefault(dots, f"over {dots} models and snapshots{kind} is {words}")
    return f"{what} {', '.join(told.values()) or 'is not measured (it takes three models that differ in it)'}"


def effects(study: Study) -> Told:
    """The paper's findings as comparisons of our runs."""
    lines: list[Sequence[Cell]] = []
    for effect in EFFECTS:
        one = effect if effect.claim != K_MAX else like_for_like(study, effect)
        above, below = (study.of(run).get(one.claim) for run in (one.above, one.below))
        what = "K_max" if one.claim == K_MAX else "locality"
        ours = f"{what} of {one.above} {shown(above)}, of {one.below} {shown(below)}"
        lines.append((one.where, compared(above, below), one.says, ours, of_nine(study, one)))
    seen = "; ".join(f"{words}: {count}" for words, count in Counter(line[1][1] for line in lines).most_common())
    return [
        f"Are the {len(lines)} findings seen here? {seen[0].upper()}{seen[1:]}.",
        Table(("where", "seen here?", "finding", "ours [95 %]", "by objects there, of nine asked [95 %]"), lines),
    ]


def like_for_like(study: Study, one: Effect) -> Effect:
    """Both at one tolerance, where one was also judged at that of the other (`--grid`)."""
    grids = {run: row.setting.get("grid") for run in study.runs(K_MAX) if (row := study.of(run).get(K_MAX))}
    ways = [[run, *(other for other in grids if other.startswith(f"{run} within "))] for run in (one.above, one.below)]
    for above, below in itertools.product(*ways):
        if grids.get(above) == grids.get(below):
            return replace(one, above=above, below=below)
    return one


def of_nine(study: Study, one: Effect) -> Cell:
    """The same by objects found, of nine asked: a finer measure than K_max, which one fault can end."""
    above, below = study.there(one.above), study.there(one.below)
    if one.claim != K_MAX or above is None or below is None:
        return ""
    kind, words = compared(above, below)
    return kind, f"{words}: {shown(above)}, {shown(below)}"


POLICIES = ("exp1", "random", "drop-one", "exp2")


def table_1(study: Study) -> list[str]:
    """The runs of Table 1, each also at other tolerances; Table 2, interventions and all others are told elsewhere."""
    judged = [run for run in study.runs(K_MAX) if " within " in run and "+" not in run]
    runs = [one.run for one in study.expected if one.run not in POLICIES[1:3]]
    return [name for run in runs for name in (run, *(other for other in judged if plain(other) == run))]


def mended(study: Study) -> list[str]:
    return list(dict.fromkeys(["exp2", "exp2l", "exp2+local", *(run for run in study.runs(K_MAX) if "+" in run)]))


def others(study: Study) -> list[str]:
    return [run for run in study.runs(K_MAX) if run not in {*table_1(study), *POLICIES, *mended(study)}]


def lengths(study: Study, runs: Iterable[str]) -> Told:
    """K_max by both rules beside the paper's, and in words which agree."""
    lines, kinds = [], dict[str, list[str]]()
    for run in runs:
        lines.append(length_line(study, run))
        kinds.setdefault(verdict(study.of(run).get(K_MAX))[1], []).append(run)
    if not lines:
        return []
    head = "run", "K_max, paper's rule [95 %]", "the paper", "agrees?", "trained on", "strict rule [95 %]"
    more = (
        "there, of nine asked [95 %]",
        "extra objects",
        "drawn when nothing is asked",
        "network evaluations for one of the denoiser",
        "images for each K",
        "measured",
    )
    words = "; ".join(f"{kind}: {', '.join(of)}" for kind, of in kinds.items())
    return [Table((*head, *more), lines), f"{words[0].upper()}{words[1:]}."]


def length_line(study: Study, run: str) -> list[Cell]:
    rows, expected = study.of(run), study.named(run)
    found, none, cost = (rows.get(f"length/{name}") for name in ("k_max_paper", "none_asked", "evaluations"))
    paper = str(found.paper or "") if found else expected.paper
    first: list[Cell] = [run, shown(found), paper, verdict(found), expected.trained]
    if found is None:
        return [*first, *[""] * 7]
    extra, there = rows.get("length/k_max_paper_extra"), study.there(run)
    return [
        *first,
        shown(rows.get("length/k_max_strict")),
        shown(there) if there else "",
        str(extra.value).strip("+()") if extra else "",
        f"{none.value}" + (f" (paper: {none.paper})" if none.paper else "") if none else "",
        f"{cost.value} at K = {cost.setting['K']}" if cost and edges(cost)[0] > 1 else "",
        str(found.setting.get("num", "")),
        study.origin("length", run),
    ]


def live(study: Study) -> Told:
    """What the demo drew, and what it could not because no weights ship."""
    rows = [row for row in study.rows if row.claim == "live/found"]
    drawn, missing = (list(dict.fromkeys(r.run for r in rows if (r.value is None) == none)) for none in (False, True))
    said = [f"Drawn live, below: {', '.join(drawn)}."] if drawn else []
    return [*said, *([f"Not drawn live, because it does not ship: {', '.join(missing)}."] if missing else [])]
