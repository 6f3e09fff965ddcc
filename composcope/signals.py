"""SIGINT (Ctrl-C) and SIGTERM (a scheduler's) as a question that work answers when it can."""

import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType


class Interrupted(BaseException):
    """Work that can be done again was broken off."""


class Stop:
    """`with Stop() as stop`: `stop.number` is the signal that came, or 0.

    A second Ctrl-C ends the process as usual. Outside the main thread, where Python has no signals,
    nothing ever comes."""

    def __init__(self, patient: bool = False):
        self.number = 0
        # Torchrun repeats to its processes what the terminal has sent them already.
        self.patient = patient
        self.breakable = False

    def __enter__(self) -> "Stop":
        self.before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self.note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def note(self, number: int, frame: FrameType | None) -> None:
        if self.number and number == signal.SIGINT and not self.patient:
            raise KeyboardInterrupt
        self.number = self.number or number
        if self.breakable:
            raise Interrupted

    def attempt(self, work: Callable[[], None]) -> None:
        """Do `work`, but break it off as soon as a signal comes: it can be done again."""
        if self.number:
            return
        self.breakable = True
        try:
            with suppress(Interrupted):
                work()
        finally:
            self.breakable = False
