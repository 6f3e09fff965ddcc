"""What an audit found, as text: a line a noise level, then what holds over all of them."""

from collections.abc import Iterator, Sequence

from composcope.results import Row

NOTHING_ASKED = "nothing was asked: only pixels were measured"
TABLE = {
    "locality/square": "square, pixels",
    "locality/near_share": "near its place",
    "locality/own_share": "own at its place",
    "locality/overlap": "overlap",
}


def table_of(rows: Sequence[Row], note: str = NOTHING_ASKED) -> str:
    """A line a noise level, with the square of the first pixel; then what holds over all."""
    by: dict[tuple[str, float | None], Row] = {}
    for one in reversed(rows):
        by[one.what, one.sigma] = one
    sigmas = sorted({one.sigma for one in rows if one.sigma is not None}, reverse=True)
    known = {key for key, one in by.items() if one.value is not None}
    columns = [what for what in TABLE if any((what, sigma) in known for sigma in sigmas)]
    lines = ["   sigma  " + "".join(f"{TABLE[what]:>24}" for what in columns)]
    for sigma in sigmas:
        keys = [(what, sigma) for what in columns]
        cells = [str(by[key].estimate) if key in known else "" for key in keys]
        lines.append(f"{sigma:8.3f}  " + "".join(f"{text:>24}" for text in cells))
    overlap = by.get(("locality/overlap", None))
    whole = by.get(("locality/conditional_locality", None))
    return "\n".join([*lines, *summary_lines(overlap, whole, note)])


def summary_lines(overlap: Row | None, whole: Row | None, note: str) -> Iterator[str]:
    """What the table says over all noise levels."""
    if overlap is None:
        yield note
        return
    if overlap.value is None:
        yield "no image has two conditions that act: there is no overlap"
    else:
        yield f"overlap of conditions {overlap.estimate}, chance {overlap.chance:.2f}"
    if whole is None:
        yield "these conditions have no places: the share of influence near a place is left out"
    elif whole.value is None:
        yield "no condition acts on any pixel: there is no conditional locality"
    else:
        yield f"conditional locality {whole.estimate}, chance {whole.chance:.2f}"
