"""What was measured: a row is one number, with where it came from and how sure it is.

    row = (claim, run, setting, seed, value [low, high], paper)

Rows live in JSON-lines files that only ever grow by whole lines; figures and the report are functions of rows.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from composcope.errors import InputError
from composcope.files import alone, write_text


@dataclass(frozen=True)
class Row:
    """One measurement. `claim` names what ("length/k_max_paper"), `setting` holds its coordinates (K, sigma, ...)."""

    claim: str
    run: str
    value: float | int | str | bool | None
    setting: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    low: float | None = None  # 95 % interval
    high: float | None = None
    paper: float | int | str | None = None  # the paper's own value, where it has one

    @property
    def key(self) -> str:
        """What makes two rows the same measurement: everything but the measured numbers."""
        return json.dumps([self.claim, self.run, self.setting, self.seed], sort_keys=True)


def known(value: float | None) -> float | None:
    """A measured number, or None where there is none: NaN is not JSON."""
    return None if value is None or math.isnan(value) else value


def read(path: str | Path) -> list[Row]:
    """The rows of a file; a file that does not exist has none."""
    path = Path(path)
    rows: list[Row] = []
    if not path.exists():
        return rows
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a file of rows") from None
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(Row(**json.loads(line)))
        except (json.JSONDecodeError, TypeError) as error:
            raise InputError(f"{path}, line {number}: not a row ({error})") from None
    return rows


def writable(path: Path) -> None:
    """An InputError, before the work is done, if rows cannot go there; pictures go into a folder of that name."""
    if not path.suffix or path.is_dir():
        raise InputError(f"--out {path}: rows go into a file, such as {path}/rows.jsonl")
    read(path)


def add(path: str | Path, rows: Iterable[Row]) -> None:
    """Add rows at the end of a file; a row measured again leaves its place for it, all others stay as they are."""
    with alone(path):
        new = {row.key: row for row in rows}
        old = {row.key: row for row in read(path) if row.key not in new}
        write_text(path, jsonl((old | new).values()))


def jsonl(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(asdict(row)) + "\n" for row in rows)
