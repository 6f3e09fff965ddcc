"""How an evaluation is shown: the rows of `composcope evaluate` as a table and as a curve, the paper's values beside.

rows "length/<what>" with setting K -> a column or a curve over K
"""

from collections.abc import Sequence

from matplotlib.figure import Figure
from rich.box import SIMPLE_HEAD
from rich.table import Table

from composcope.report.locality import edges
from composcope.results import Row

COLUMNS = {
    "exact": "exact",
    "complete": "none missing",
    "found": "found",
    "missing": "missing",
    "extra": "extra",
    "merged": "merged",
    "count_error": "count error",
    "tolerance": "detector errs",
}
SHARES = ("exact", "complete", "tolerance")  # the others are objects an image


def cell(row: Row) -> str:
    share = row.claim.removeprefix("length/") in SHARES
    interval = "" if row.low is None or not share else f" [dim]{row.low:.0%}-{row.high:.0%}[/dim]"
    return (f"{row.value:.0%}" if share else f"{row.value:.2f}") + interval


def table(rows: Sequence[Row], title: str) -> Table:
    """A line for each K: shares of images, objects an image, and the failures the detector's own error may explain."""
    shown = Table("K", title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, words in COLUMNS.items():
        shown.add_column(words, min_width=8 if name in ("exact", "complete") else None)  # "86%-100%" in 80 columns
    by_place = {(row.setting.get("K"), row.claim): row for row in rows}
    for K in sorted({row.setting["K"] for row in rows if "K" in row.setting}):
        found = [by_place.get((K, f"length/{name}")) for name in COLUMNS]
        shown.add_row(str(K), *(cell(row) if row else "" for row in found))
    return shown


def verdict(rows: Sequence[Row]) -> Table:
    """K_max by both rules, the extra objects up to there, and what is drawn at K = 0; the paper's values beside."""
    names = {
        "length/k_max_paper": "K_max, the paper's rule",
        "length/k_max_strict": "K_max, strict rule",
        "length/none_asked": "objects drawn at K = 0",
    }
    shown = Table("", "here", "95 % interval", "the paper")
    extra = {row.claim.removesuffix("_extra"): row.value for row in rows if row.claim.endswith("_extra")}
    for row in rows:
        if row.claim in names:
            interval = "" if row.low is None else f"{row.low:.0f}-{row.high:.0f}"
            value = f"{row.value}{extra.get(row.claim, '')}".removesuffix("+(0)")
            shown.add_row(names[row.claim], value, interval, str(row.paper or ""))
    return shown


def curve(rows: Sequence[Row], claim: str = "length/exact") -> Figure:
    """A share of images, or objects an image, over K: a line for each run, with its 95 % interval."""
    name = claim.removeprefix("length/")
    own = [row for row in rows if row.claim == claim]
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    axes = figure.add_subplot(xlabel="K, objects asked for", ylabel=COLUMNS[name])
    if name in SHARES:
        axes.set_ylim(-0.03, 1.03)
    else:
        axes.axline((0, 0), slope=1, color="0.7", ls="--", lw=1)
    for run in dict.fromkeys(row.run for row in own):
        of_run = sorted((row for row in own if row.run == run), key=lambda row: row.setting["K"])
        K, (value, low, high) = [row.setting["K"] for row in of_run], zip(*map(edges, of_run), strict=True)
        (line,) = axes.plot(K, value, marker="o", markersize=3, label=run)
        axes.fill_between(K, low, high, alpha=0.15, color=line.get_color())
    axes.legend(frameon=False, fontsize=8)
    return figure
