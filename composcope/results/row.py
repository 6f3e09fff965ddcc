"""What was measured: a row is one number with all its coordinates, each a field of its own.

    what was measured, of which weights, where (K, sigma, layer, ...)  ->  value [low, high], n

Rows live in JSON-lines files that only ever grow by whole lines; figures, tables and the report are
functions of rows. Nothing is ever read out of a name: what a coordinate does not say, a row does
not know."""

import datetime
import functools
import hashlib
import math
import operator
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from composcope.errors import InputError
from composcope.files import alone, read_lines, write_text
from composcope.progress import tell
from composcope.results.estimate import Estimate

Value = float | int | str | bool | None
Key = TypeVar("Key")


@dataclass(frozen=True)
class Row:
    """One measurement. A coordinate that does not apply, or is not known of an old row, is None."""

    what: str  # what was measured: "length/k_max", "locality/near_share", ...
    value: Value = None
    low: float | None = None  # 95 % interval
    high: float | None = None
    n: int | None = None  # samples behind the value

    # Which model.
    # the name of its folder, for people; two runs of one name differ in `weights`
    run: str | None = None
    snapshot: str | None = None  # first, early, middle or final
    images: int | None = None  # that it was trained on up to here
    weights: str | None = None  # fingerprint
    trained: int | None = None  # the most objects of its training images
    labels: str | None = None  # which of them were labelled
    penalty: float | None = None  # weight of the penalty on far influence in a sweep of it
    intervention: str | None = None  # at sampling time; None: as it was trained
    radius: float | None = None  # of the intervention, or of what counts as near, in image sides

    # How it was asked and judged.
    asked: str | None = None  # how conditions were chosen: "paper", "random", ...
    K: int | None = None  # conditions asked for
    max_K: int | None = None  # the most that were counted, where the value is one over all K
    # an object counts within this share of the image's side of its place; of a claim
    tolerance: float | None = None
    # by which K_max is told: "paper", "strict", "eight" (images), "places" (others are not judged)
    # or "places_eight"
    rule: str | None = None
    steps: int | None = None  # of the sampler
    distance: float | None = None  # between asked places

    # Where in the model and along the noise.
    sigma: float | None = None
    level: str | None = None  # a named noise level: "high", "mid", "low"
    states: str | None = None  # "trajectory" or "noised"
    pixel: tuple[int, int] | None = None  # (row, column)
    condition: str | None = None  # the condition, or its number in the set
    layer: str | None = None
    index: int | None = None  # of the layer, in the order of the network
    part: str | None = None  # of the network: "encoder", "mid", ...
    maps: str | None = None  # "hidden" states or "attention" maps
    chance: float | None = None  # what the value would be if nothing were to be seen

    # Toys: theory, SIM, circles.
    claim: str | None = None  # what the paper says, in words
    predicted: float | None = None
    holds: bool | None = None
    step: int | None = None  # of a training
    contrast: float | None = None
    concept: str | None = None
    setting: str | None = None  # anything else that tells two measurements apart, in words

    # Where it came from.
    seed: int | None = None
    detector: str | None = None  # that found the objects: a fingerprint of its weights
    # of the code that measured it; "+" after it: with changes not committed
    commit: str | None = None
    date: str | None = None  # ISO, UTC

    @property
    def key(self) -> tuple:
        """What makes two rows the same measurement: all but the numbers and how they came about."""
        return COORDINATES(self)

    @property
    def room(self) -> str:
        """That measured it: "length", "locality", ..."""
        return self.what.partition("/")[0]

    @property
    def estimate(self) -> Estimate:
        return Estimate(float(self.value), self.low, self.high, self.n)  # type: ignore[arg-type]

    def flat(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in FIELDS}


FIELDS = tuple(field.name for field in fields(Row))
MEASURED = {"value", "low", "high", "n", "holds", "detector", "commit", "date"}
COORDINATES = operator.attrgetter(*(name for name in FIELDS if name not in MEASURED))


def row(what: str, value: Estimate | Value, **coordinates: Any) -> Row:
    """A row made now: an estimate brings its interval; NaN, which is not JSON, is no value."""
    numbers: dict[str, Any] = asdict(value) if isinstance(value, Estimate) else {"value": value}
    finite = {name: number for name, number in numbers.items() if not unsaid(number)}
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return Row(what, **({"commit": commit(), "date": now} | finite | coordinates))


def unsaid(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


@functools.cache
def commit() -> str | None:
    """The commit of the package's repository, or its version where there is no repository."""
    package = Path(__file__).parents[1]
    if not (package.parent / ".git").exists():
        from importlib.metadata import version

        return version("composcope")
    told: dict[str, Any] = {"cwd": package.parent, "text": True, "stderr": subprocess.DEVNULL}
    try:
        at = subprocess.check_output(["git", "rev-parse", "--short=10", "HEAD"], **told)
        status = ["git", "status", "--porcelain", "-uno", "composcope"]
        changed = subprocess.check_output(status, **told)
    except (OSError, subprocess.CalledProcessError):
        return None
    return at.strip() + ("+" if changed.strip() else "")


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a file; a file that does not exist has none."""
    return read_lines(path, Row) if Path(path).exists() else []


def check_out(path: Path) -> None:
    """An InputError, before the work is done, if rows cannot go there, or would not be found there;
    pictures go into a folder of that name."""
    if path.suffix != ".jsonl" or path.is_dir():
        folder = not path.suffix or path.is_dir()
        like = path / "rows.jsonl" if folder else path.with_suffix(".jsonl")
        raise InputError(f"--out {path}: rows go into a file, such as {like}")
    read_rows(path)


def own_folder(out: Path, name: str, *settings: Any) -> Path:
    """Beside the rows: a folder of its own for everything that changes what is measured."""
    return out.with_suffix("") / f"{name}-{digest(repr(settings).encode())}"


def digest(given: bytes) -> str:
    """Eight characters that change with what is given."""
    return hashlib.sha256(given).hexdigest()[:8]


def tell_rows(
    rows: Iterable[Row], out: Path, as_json: bool, beside: str, then: str, *tables: Any
) -> None:
    """What a command that measures says in the end: its table, where its product is, what is next.
    With `as_json`, rows alone go to standard output."""
    told = (*tables, f"rows: {out}   {beside}", f"next: {then}")
    tell(*told, json=jsonl(rows) if as_json else None)


def add_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """At the end of a file; a row measured again leaves its place, all others stay."""
    with alone(path):
        new = {row.key: row for row in rows}
        old = {row.key: row for row in read_rows(path) if row.key not in new}
        write_text(path, jsonl((old | new).values()))


def jsonl(rows: Iterable[Row]) -> str:
    """A line a row; coordinates that do not apply are left out."""
    known = ({name: at for name, at in row.flat().items() if at is not None} for row in rows)
    return msgspec.json.Encoder().encode_lines(known).decode()


def gather(folders: Iterable[str | Path]) -> list[Row]:
    """The rows of all .jsonl files below the folders; of rows with one key the last counts."""
    paths = [path for folder in folders for path in sorted(Path(folder).rglob("*.jsonl"))]
    files = (read_rows(path) for path in paths if path.name != "log.jsonl")
    return list({row.key: row for rows in files for row in rows}.values())


def where(rows: Iterable[Row], **coordinates: Any) -> list[Row]:
    """The rows whose coordinates have these values; several values mean any of them. Numbers are
    equal if they are in float32."""
    unknown = set(coordinates) - set(FIELDS)
    if unknown:
        raise InputError(f"a row has no coordinate {min(unknown)!r}")
    found = list(rows)
    for name, wanted in coordinates.items():
        several = isinstance(wanted, set | frozenset | list | tuple | range)
        given = [wanted, *wanted] if several else [wanted]  # a pixel is itself a tuple
        values = [near for one in given for near in roundings(one)]
        found = [row for row in found if getattr(row, name) in values]
    return found


def roundings(wanted: Any) -> list:
    """A value; of a number also what float32 makes of it, as rows of noise levels hold it, and the
    shortest number that float32 takes for the same."""
    if not isinstance(wanted, float):
        return [wanted]
    with np.errstate(over="ignore"):
        single = np.float32(wanted)
    return [wanted, float(single), float(str(single))]


def with_value(rows: Iterable[Row]) -> list[Row]:
    """Those that have a value."""
    return [row for row in rows if row.value is not None]


def only(rows: Sequence[Row], **coordinates: Any) -> Row | None:
    """The last measured row with these coordinates, or None."""
    found = where(rows, **coordinates)
    return max(found, key=lambda row: row.date or "") if found else None


def grouped(rows: Iterable[Row], by: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """Rows by what they have in common, in their order."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(by(row), []).append(row)
    return groups


def columns(rows: Sequence[Row]) -> Iterator[str]:
    """The fields that at least one of the rows has, in the order of Row."""
    return (name for name in FIELDS if any(getattr(row, name) is not None for row in rows))
