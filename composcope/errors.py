"""What is not our bug: bad input, a full disk, Ctrl-C; a command tells it in one sentence."""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGE = Path(__file__).parent
NO_MEMORY = "there is not enough memory for this; ask for less at once"
SHOWN = 24  # names that a sentence lists at most


class InputError(ValueError):
    """Something the user gave is wrong; the message is one sentence that names what and where."""


def check_name(noun: str, name: object, names: Collection[str]) -> None:
    """An InputError for what is none of these names."""
    if name not in names:
        shown = ", ".join([*names][:SHOWN])
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise InputError(f"there is no {noun} {name!r}; the {noun}s are {shown}{more}")


@contextmanager
def told_at(where: str) -> Iterator[None]:
    """Whatever input is found to be wrong inside, the sentence begins with where it is."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


class Stopped(Exception):
    """A signal asked for the end; the message says where the same command goes on."""

    def __init__(self, sentence: str, number: int = signal.SIGINT):
        super().__init__(sentence, number)
        self.sentence = sentence
        self.code = 128 + number  # 130 after Ctrl-C, 143 after SIGTERM, as shells have it


@contextmanager
def foreign(*sources: str) -> Iterator[None]:
    """An error inside what the user named, FILE.py:NAME or package.module:NAME, or in what that
    calls, is told with its file and line; any other is our own."""
    try:
        yield
    except (InputError, Stopped):
        raise
    except (Exception, SystemExit) as error:
        files = {file_of(source.rpartition(":")[0]) for source in sources}
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [frame for frame in frames if frame.filename in files]
        theirs = theirs or [frame for frame in frames if is_beside(frame.filename, files)]
        if not isinstance(error, SystemExit):  # a command may end itself
            theirs = theirs or (called(frames) if files else [])
        if not theirs:
            raise
        where = f"{Path(theirs[-1].filename).name}, line {theirs[-1].lineno}"
        reason = (str(error).strip() or "no reason is given").splitlines()[0]
        raise InputError(f"{where}: {type(error).__name__}: {reason}") from error


def file_of(place: str) -> str:
    """The file of a module that was imported by this name, or that is named itself."""
    file = getattr(sys.modules.get(place), "__file__", None)
    return file or str(Path(place).resolve())


def is_beside(file: str, files: Collection[str]) -> bool:
    """Whether a file lies where the user's are, and is neither ours nor an installed one."""
    near = any(Path(file).is_relative_to(Path(named).parent) for named in files)
    return near and not any(Path(file).is_relative_to(root) for root in (PACKAGE, sys.prefix))


def called(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """The way inside a model that one of our adapters called, if it ended there."""
    ours = [i for i, frame in enumerate(frames) if Path(frame.filename).is_relative_to(PACKAGE)]
    last = ours[-1] if ours else 0
    adapted = Path(frames[last].filename).parent == PACKAGE / "adapters"
    return frames[last + 1 :] if adapted else []


@contextmanager
def sentences() -> Iterator[None]:
    """The work of a command: what ends it, but for a bug, becomes a sentence and an exit code."""
    open_streams()
    in_main = threading.current_thread() is threading.main_thread()  # elsewhere are no signals
    before = signal.signal(signal.SIGTERM, stopped) if in_main else None
    try:
        try:
            yield
        except SystemExit:  # of --help
            flush()
            raise
        flush()
    except InputError as error:
        end(str(error))
    except Stopped as stop:
        end(stop.sentence, stop.code)
    except KeyboardInterrupt:
        end("stopped; the same command goes on from what is on the disk", 130)
    except BrokenPipeError:  # of a reader that has seen enough, such as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except MemoryError:
        end(NO_MEMORY)
    except RuntimeError as error:  # as torch tells it
        if not any(words in str(error) for words in ("allocate memory", "out of memory")):
            raise
        end(NO_MEMORY)
    except OSError as error:
        end(f"{error.filename or 'standard output, or a file'}: {error.strerror or error}")
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)


def open_streams() -> None:
    """Closed streams lead nowhere; characters that a terminal lacks become question marks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (open as long as the process)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def flush() -> None:
    """What was printed is on its way before the command ends well: a full disk is told."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        error.filename = "standard output"
        raise


def stopped(number: int, frame: object) -> None:
    raise Stopped("stopped; the same command goes on from what is on the disk", number)


def end(sentence: str, code: int = 2) -> None:
    """Of the processes of one torchrun, the first speaks for all."""
    if os.environ.get("RANK", "0") == "0":
        plain = "".join(letter if letter.isprintable() else "?" for letter in sentence)
        print(f"composcope: {plain}", file=sys.stderr)  # names in files may hold anything
    sys.exit(code)
