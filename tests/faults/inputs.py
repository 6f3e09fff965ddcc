"""Bad files for every reader: valid ones damaged by hypothesis, and a corpus of what once broke.

A reader may take what it is given or refuse it with an InputError (OSError for a file that is not
there). Anything else is a traceback; more than SECONDS is a hang; a canary that exists was run."""

import copy
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from composcope.errors import InputError

SECONDS = 300  # far more than anything takes on a busy machine


@dataclass
class Tally:
    """What became of bad inputs."""

    tried: int = 0
    refused: int = 0
    tracebacks: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)
    executions: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # files of refused commands

    @property
    def faults(self) -> list[str]:
        return self.tracebacks + self.hangs + self.executions + self.left


class Hang(BaseException):
    pass


@contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    def out_of_time(number: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Reader:
    """One kind of file: its name in a folder, a valid one, and what reads it."""

    name: str
    valid: bytes
    read: Callable[[Path], Any]
    damaged: st.SearchStrategy[bytes]


def attempt(reader: Reader, content: bytes, folder: Path, tally: Tally) -> None:
    """Read one bad file."""
    path = folder / reader.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    canary = folder / "canary"
    tally.tried += 1
    try:
        with limited():
            reader.read(path)
    except (InputError, OSError) as error:
        tally.refused += 1
        if "\n" in str(error):
            tally.tracebacks.append(f"{reader.name}: more than a sentence: {error!r:.300}")
    except Hang:
        tally.hangs.append(f"{reader.name}: {content[:200]!r}")
    except BaseException as error:
        tally.tracebacks.append(f"{reader.name}: {error!r:.200}: {content[:200]!r}")
    if canary.exists():
        tally.executions.append(f"{reader.name}: {content[:200]!r}")
        canary.unlink()


# Damage.

ODD = (
    *(None, True, -1, 0, 1e308, -0.0, "", "\u202e<script>alert(1)</script>", "../../etc/passwd"),
    *([], {}, [[]], 10**400, 2**63, 10**7, -(10**7), 0.5, "nan", ["red"] * 50, {"a": {"b": []}}),
)


def places(document: Any, at: tuple = ()) -> Iterator[tuple]:
    """The way to every value of a JSON document."""
    yield at
    items = document.items() if isinstance(document, dict) else ()
    items = enumerate(document) if isinstance(document, list) else items
    for key, value in items:
        yield from places(value, (*at, key))


def changed(document: Any, at: tuple, value: Any) -> Any:
    if not at:
        return value
    copied = copy.deepcopy(document)
    inner = copied
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return copied


def without(document: Any, at: tuple) -> Any:
    copied = copy.deepcopy(document)
    inner = copied
    for key in at[:-1]:
        inner = inner[key]
    del inner[at[-1]]
    return copied


def damaged_bytes(valid: bytes) -> st.SearchStrategy[bytes]:
    """Cut, with other bytes in places, or anything at all."""
    cut = st.integers(0, len(valid) - 1).map(lambda end: valid[:end])
    spots = st.lists(st.tuples(st.integers(0, len(valid) - 1), st.integers(0, 255)), min_size=1)

    def put(changes: list[tuple[int, int]]) -> bytes:
        content = bytearray(valid)
        for place, byte in changes:
            content[place] = byte
        return bytes(content)

    return st.one_of(cut, spots.map(put), st.binary(max_size=200))


def damaged_json(document: Any) -> st.SearchStrategy[bytes]:
    """A document with a value replaced, a field missing or one too many; or damaged as text."""
    ways = list(places(document))
    odd = st.one_of(st.sampled_from(ODD), st.recursive(st.integers() | st.text(), st.lists))
    replaced = st.tuples(st.sampled_from(ways), odd).map(lambda p: changed(document, *p))
    shorter = st.sampled_from([way for way in ways if way]).map(lambda at: without(document, at))
    longer = st.text(max_size=5).map(lambda name: {**document, f"x{name}": 1})
    options = [replaced, shorter] + ([longer] if isinstance(document, dict) else [])
    as_text = st.one_of(*options).map(lambda d: json.dumps(d).encode())
    return st.one_of(as_text, damaged_bytes(json.dumps(document).encode()))


# The campaign.


def campaign(
    readers: list[Reader],
    corpus: dict[str, list[bytes]],
    folder: Path,
    examples: int,
    number: int = 0,
) -> Tally:
    """For each reader the files of the corpus that have its name, then `examples` damaged ones."""
    tally = Tally()
    for reader in readers:
        for content in corpus.get(reader.name, ()):
            attempt(reader, content, folder, tally)
        fuzz(reader, folder, tally, examples, number)
    return tally


def fuzz(reader: Reader, folder: Path, tally: Tally, examples: int, number: int) -> None:
    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(reader.damaged)
    def every(content: bytes) -> None:
        attempt(reader, content, folder, tally)

    every()
