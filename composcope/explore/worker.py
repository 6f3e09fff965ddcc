"""One process computes, first come first served; the server hands it jobs and gets lines back.

    server -> worker   ("job", number, request)   ("cancel", number)   ("close", 0)
    worker -> server   (number, kind, payload)    kind: line, wrong, failed, end

Between two steps of a job the worker reads its mail, so that a cancelled job ends at the next step.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from composcope.errors import InputError
from composcope.explore.requests import Described, Look, Picture, Sample

LONGEST = 64  # jobs that may wait
log = logging.getLogger("composcope.explore")


class Busy(Exception):
    """Too many jobs wait."""


class Failed(Exception):
    """The computation ended with a fault of ours; the sentence says what is known."""


@dataclass(frozen=True)
class Stage:
    """What the worker says when its models are loaded."""

    models: tuple[Described, ...]
    left_out: tuple[str, ...]  # sentences on what could not be loaded


# ---------------------------------------------------------------------------------------------
# The server's side.


@dataclass(eq=False)
class Job:
    """A request on its way: its lines arrive in a queue."""

    number: int
    lines: asyncio.Queue = field(default_factory=asyncio.Queue)
    over: bool = False


class Workshop:
    """The worker process as the server sees it; if it dies, another one takes its place."""

    def __init__(self, runs: Sequence[str], conditioner: str | None = None):
        self.given = (tuple(runs), conditioner)
        self.jobs: dict[int, Job] = {}
        self.number = 0
        self.closing = False

    async def open(self) -> Stage:
        """Start the process and wait for its models."""
        self.loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[Stage] = self.loop.create_future()
        self.start()
        return await self.ready

    def start(self) -> None:
        spawn = multiprocessing.get_context("spawn")  # a fork would take the server's sockets along
        self.mail, theirs = spawn.Pipe()
        given = (theirs, *self.given)
        self.process = spawn.Process(target=serve_jobs, args=given, name="worker", daemon=True)
        self.process.start()
        theirs.close()
        threading.Thread(target=self.listen, args=(self.mail,), daemon=True).start()

    def listen(self, mail: Connection) -> None:
        """Hand on what the worker sends, until it is gone."""
        try:
            while True:
                message = mail.recv()
                self.loop.call_soon_threadsafe(self.receive, *message)
        except (EOFError, OSError):
            if not self.closing:
                self.loop.call_soon_threadsafe(self.lost)

    def receive(self, number: int | None, kind: str, payload: Any) -> None:
        if kind == "ready":
            if not self.ready.done():
                self.ready.set_result(payload)
            return
        job = self.jobs.get(number) if number else None
        if job is None:
            return
        job.lines.put_nowait((kind, payload))
        if kind != "line":
            self.finish(job)

    def finish(self, job: Job) -> None:
        job.over = True
        self.jobs.pop(job.number, None)

    def lost(self) -> None:
        """The process died: those who wait are told so, and another one begins."""
        if not self.ready.done():
            self.ready.set_exception(InputError("the process that computes could not be started"))
            return
        log.error(
            "the worker process ended (exit code %s); another one begins", self.process.exitcode
        )
        self.dismiss("the process that computes ended; ask again")
        self.start()

    def dismiss(self, sentence: str) -> None:
        """Tell all who wait that nothing more will come."""
        for number in list(self.jobs):
            self.receive(number, "failed", sentence)

    def submit(self, request: Picture) -> Job:
        if len(self.jobs) >= LONGEST:
            raise Busy
        self.number += 1
        job = self.jobs[self.number] = Job(self.number)
        self.send("job", job.number, request)
        return job

    def cancel(self, job: Job) -> None:
        """Whoever asked is gone, or has seen enough."""
        if not job.over:
            self.finish(job)
            self.send("cancel", job.number)

    def send(self, *message: Any) -> None:
        try:
            self.mail.send(message)
        except OSError:  # the process has just died; `lost` speaks to those who wait
            log.error("a message to the worker was lost")

    async def lines(self, job: Job) -> AsyncIterator[bytes]:
        """The job's lines as they come; leaving early cancels it."""
        try:
            while True:
                kind, payload = await job.lines.get()
                if kind == "wrong":
                    raise InputError(payload)
                if kind == "failed":
                    raise Failed(payload)
                if kind == "end":
                    return
                yield payload
        finally:
            self.cancel(job)

    def close(self) -> None:
        self.closing = True
        self.send("close", 0)  # closed by us, the pipe would stay open: `listen` reads from it
        self.process.join(5)
        if self.process.is_alive():
            self.process.terminate()


# ---------------------------------------------------------------------------------------------
# The worker's side.


class Gone(Exception):
    """The job in hand was cancelled."""


class Mail:
    """What the server has sent: jobs that wait, and which of them are wanted no more."""

    def __init__(self, pipe: Connection):
        self.pipe = pipe
        self.waiting: deque[tuple[int, Picture]] = deque()
        self.current: int | None = None
        self.unwanted = False

    def read(self) -> None:
        kind, number, *rest = self.pipe.recv()
        if kind == "close":
            raise EOFError
        if kind == "job":
            self.waiting.append((number, rest[0]))
        elif number == self.current:
            self.unwanted = True
        else:
            self.waiting = deque(job for job in self.waiting if job[0] != number)

    def next(self) -> Picture:
        """The job that came first; waits for one."""
        self.current = None
        while self.pipe.poll() or not self.waiting:
            self.read()
        self.current, request = self.waiting.popleft()
        self.unwanted = False
        return request

    def check(self) -> None:
        """Gone, if the job in hand was cancelled meanwhile."""
        while self.pipe.poll():
            self.read()
        if self.unwanted:
            raise Gone

    def send(self, kind: str, payload: Any = None) -> None:
        self.pipe.send((self.current, kind, payload))


def serve_jobs(pipe: Connection, runs: Sequence[str], conditioner: str | None) -> None:
    """The worker process: load the models, then job after job until the server is gone."""
    # Ctrl-C is for the server, which then says so.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Terminated amid a computation, it still gives back what it holds of the system.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    os.environ["TQDM_DISABLE"] = "1"  # bars of what loads a pipeline, on the server's terminal
    logging.basicConfig(level=logging.INFO, format="composcope: %(message)s")
    from composcope.explore.stage import Models

    mail = Mail(pipe)
    try:
        models = Models.load(runs, conditioner)
        models.warm()
        mail.send("ready", Stage(models.described, models.left_out))
        while True:
            do_job(mail, mail.next(), models)
    except (EOFError, OSError):  # the server is gone
        return


def do_job(mail: Mail, request: Picture, models: Any) -> None:
    """One job, line by line."""
    jobs: dict[type, Callable[[Any], Iterator[dict]]] = {Sample: models.sample, Look: models.look}
    try:
        for line in jobs[type(request)](request):
            mail.check()
            if line:
                mail.send("line", msgspec.json.encode(line))
        mail.send("end")
    except Gone:
        return
    except InputError as error:
        mail.send("wrong", str(error))
    except (EOFError, OSError):
        raise
    except Exception as error:
        log.exception("a job failed")
        mail.send("failed", f"the computation failed: {error}")
