"""What the rows say of the inside of models, and of theory: where scores look, what concepts share, which claims hold.

study -> [Table(head, lines), sentence, ...]    for each part, as in findings.py
"""

import re
from collections.abc import Sequence
from statistics import fmean

from composcope.report.findings import LOCALITY, Cell, Study, Table, Told, correlation, number, shown
from composcope.report.locality import MOMENTS, edges
from composcope.report.theory import predicted
from composcope.results import Row

NOISE = {"high": (10, 1000), "middle": (0.5, 10), "low": (0, 0.5)}  # sigma from, and below


def localities(study: Study) -> Told:
    """Conditional locality of every run along its training, and how far pixels look."""
    lines: list[Sequence[Cell]] = []
    asked = dict.fromkeys([*("exp1", "exp2l", "exp3l", "exp2", "exp3"), *study.runs(LOCALITY)])
    for run in dict.fromkeys([*asked, *study.runs("locality/square")]):
        found = [study.of(run, moment).get(LOCALITY) for moment in MOMENTS]
        values = [shown(row) if row else "" for row in found]
        if run in asked:
            values[-1] = shown(found[-1])
        chance = next((number(row.setting["chance"]) for row in found if row), "")
        sides = [side(study, run, *ends) for ends in NOISE.values()]
        lines.append([run, *values, chance, *sides, study.origin("locality", run) if any([*found, *sides]) else ""])
    moments = "early [95 %]", "middle [95 %]", "final [95 %]"
    squares = (f"square a pixel looks at, {noise} noise" for noise in NOISE)
    words = correlation(study)
    said = f"{words[0].upper()}{words[1:]}; the paper calls the two strongly correlated and prints no number."
    return [Table(("run", *moments, "chance", *squares, "measured"), lines), said]


def side(study: Study, run: str, low: float, high: float) -> str:
    """Of the square with 90 % of a pixel's gradient: its mean side in pixels, over pixels and noise levels."""
    own = [row for row in study.rows if row.run == run and row.claim == "locality/square"]
    final = [row for row in own if row.setting.get("snapshot", "final") == "final"]
    found = [edges(row)[0] for row in final if low <= row.setting["sigma"] < high]
    return f"{fmean(found):.0f}" if found else ""


def features(study: Study) -> Told:
    """Cosines between concepts in parts of the network, and the layer in which they are least alike."""
    rows = [row for row in study.rows if row.claim.startswith("features/")]
    claims = ("between", "within", "ratio", "gap")
    told: Told = []
    places: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        if row.setting.get("part") in ("mean", "output"):
            at = row.run, row.setting.get("maps", "hidden states"), row.setting["layer"], row.setting.get("level", "")
            places.setdefault(at, {})[row.claim.partition("/")[2]] = row
    if places:
        lines = [
            [*at, *(shown(own[c]) if c in own else "" for c in claims), study.origin("features", at[0])]
            for at, own in places.items()
        ]
        told.append(Table(("run", "of", "where", "noise", "between concepts", *claims[1:], "measured"), lines))
    for run in study.runs("features/between"):
        layers = [row for row in rows if row.run == run and row.claim == "features/between" and "index" in row.setting]
        if layers:
            best = min(layers, key=lambda row: abs(edges(row)[0]))
            where = f"{best.setting['layer']} at {best.setting['level']} noise"
            told.append(f"{run}: the mean cosine between concepts is nearest to 0 in {where}, {shown(best)}.")
    return told + words(rows)


def words(rows: Sequence[Row]) -> Told:
    """Where a word is heard while the image is still noise, of words whose phrase names a third of the picture."""
    heard: dict[tuple, Row] = {}
    for row in rows:
        if row.claim == "features/share_in_third":
            word = row.run, row.setting["word"], row.setting["start"]
            heard[word] = max(row, heard.get(word, row), key=lambda one: one.setting["sigma"])
    lines = [[run, word, shown(row), number(row.setting["chance"])] for (run, word, _), row in heard.items()]
    return [Table(("run", "word", "of its influence, in the third its phrase names", "chance"), lines)] * bool(lines)


def claims(study: Study, pattern: str) -> Told:
    """Claims with what was predicted and measured; those that fail are named."""
    rows = [row for row in study.rows if re.match(pattern, row.claim) and "holds" in row.setting]
    if not rows:
        return []
    lines = [(row.claim, row.setting["says"], predicted(row), shown(row), held(row)) for row in rows]
    fail = [row.setting["says"] for row in rows if not row.setting["holds"]]
    origin = study.origin(rows[0].claim.partition("/")[0], rows[0].run)
    said = f"{len(rows) - len(fail)} of {len(rows)} claims hold (measured: {origin})."
    return [
        said + (f" These do not: {'; '.join(fail)}." if fail else ""),
        Table(("claim", "in words", "predicted", "measured [95 %]", "holds?"), lines),
    ]


def held(row: Row) -> Cell:
    return ("agree", "yes") if row.setting["holds"] else ("differ", "no")


def circles(study: Study) -> Told:
    """Of each model of circles at the end of its training: how often each concept is right, where it was trained and
    where it was not."""
    ends: dict[str, dict] = {}
    for row in study.rows:
        if row.claim == "circles/accuracy":
            seen = "trained" if row.setting["trained"] else "unseen"
            last = ends.setdefault(row.run, {}).setdefault((seen, row.setting["concept"]), [])
            last[:] = [kept for kept in last if kept.setting["step"] == row.setting["step"]] + [row]
    columns = [(seen, concept) for seen in ("trained", "unseen") for concept in ("colour", "size")]
    lines = [[run, *(worst(end.get(column, [])) for column in columns)] for run, end in ends.items()]
    head = "circles-contrast-images-seed", *(f"{concept} right, {seen} combinations" for seen, concept in columns)
    return [Table(head, lines)] if lines else []


def worst(rows: Sequence[Row]) -> str:
    return shown(min(rows, key=lambda row: edges(row)[0])) if rows else ""
