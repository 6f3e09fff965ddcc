"""HTTP: what may be asked, and streams that end when nobody listens any more.

GET   /              the page
GET   /report        the report, if there is one
GET   /api/models    who can be asked
GET   /api/rows      what was measured of a run
POST  /api/sample    a line of JSON for every step of every picture
POST  /api/look      what a pixel looks at"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from composcope.errors import InputError
from composcope.explore.guard import Guard, json_of, refused
from composcope.explore.requests import (
    LARGEST,
    Described,
    Look,
    Picture,
    Sample,
    check_picture,
    parse,
)
from composcope.explore.settings import Settings
from composcope.explore.worker import Busy, Failed, Stage, Workshop, log
from composcope.results import Row, gather

STATIC = Path(__file__).parent / "static"
# The report is a file of one's own with scripts inside; it is shown as a stranger to this server.
REPORT_POLICY = (
    "sandbox allow-scripts allow-popups; default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'"
)


class Server:
    """The routes, on top of one workshop."""

    def __init__(self, settings: Settings, ready: Callable[[Stage], None] = lambda stage: None):
        self.settings = settings
        self.ready = ready
        self.workshop = Workshop(settings.runs, settings.conditioner)

    @property
    def models(self) -> dict[str, Described]:
        return {model.name: model for model in self.stage.models}

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        try:
            self.stage = await self.workshop.open()
        except InputError as error:
            self.stage = Stage((), (str(error),))
        self.ready(self.stage)
        try:
            yield
        finally:
            self.workshop.close()

    def app(self) -> ASGIApp:
        routes = [
            Route("/", self.page),
            Route("/report", self.report),
            Route("/api/models", self.get_models),
            Route("/api/rows", self.get_rows),
            Route("/api/sample", self.post_sample, methods=["POST"]),
            Route("/api/look", self.post_look, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        lost = {404: not_found, 405: not_allowed}
        inner = Starlette(routes=routes, lifespan=self.lifespan, exception_handlers=lost)
        return Guard(inner, self.settings)

    async def page(self, request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def report(self, request: Request) -> Response:
        if not self.settings.report.is_file():
            return refused(404, "report: there is none yet; `composcope report` makes it")
        return FileResponse(
            self.settings.report,
            media_type="text/html",
            headers={"content-security-policy": REPORT_POLICY},
        )

    async def get_models(self, request: Request) -> Response:
        return json_of(
            {
                "models": self.stage.models,
                "left_out": self.stage.left_out,
                "report": self.settings.report.is_file(),
            }
        )

    async def get_rows(self, request: Request) -> Response:
        names = request.query_params.getlist("run")
        if len(names) != 1:
            return refused(422, "run: give the name of one run, as in /api/rows?run=exp1")
        if names[0] not in self.models:
            return refused(404, f"run: there is none of that name; {self.those_known}")
        rows = await run_in_threadpool(self.rows_of, names[0])
        return json_of([known_fields(row) for row in rows])

    def rows_of(self, name: str) -> list[Row]:
        """Rows beside the run and in the folder of results, of these very weights where rows say of
        which."""
        weights = self.models[name].weights
        folders = [self.settings.folders.get(name), self.settings.results]
        rows: list[Row] = []
        for folder in folders:
            if folder is None or not folder.is_dir():
                continue
            try:
                rows += [
                    row
                    for row in gather([folder])
                    if row.run == name and row.weights in (None, weights)
                ]
            except InputError as error:
                log.warning("rows of %s are left out: %s", name, error)
        return rows

    async def post_sample(self, request: Request) -> Response:
        return await self.answer(request, Sample, self.stream)

    async def post_look(self, request: Request) -> Response:
        return await self.answer(request, Look, self.whole)

    async def answer(self, request: Request, kind: type, give: Callable) -> Response:
        """Check a request, hand it to the worker, and give what comes back."""
        kind_said = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind_said.lower() != "application/json":
            return refused(415, "Content-Type: a request is application/json")
        body = await limited(request)
        if body is None:
            return refused(413, f"body: longer than {LARGEST} bytes")
        try:
            asked: Picture = parse(body, kind)
            for where, picture in pictures_of(asked):
                if picture.model not in self.models:
                    return refused(404, f"{where}model: there is no such model; {self.those_known}")
                check_picture(picture, self.models, where)
            lines = self.workshop.lines(self.workshop.submit(asked))
            return await give(request, lines)
        except InputError as error:
            return refused(422, str(error))
        except Busy:
            return refused(503, "the server is busy: too many requests wait; ask again in a moment")
        except Failed as error:
            return refused(500, str(error))

    @property
    def those_known(self) -> str:
        return f"there are {', '.join(self.models)}"

    async def stream(self, request: Request, lines: AsyncIterator[bytes]) -> Response:
        """A line as soon as it is made; the first decides whether there is anything to stream."""
        first = await unless_gone(request, anext(lines))
        if first is None:
            await lines.aclose()  # type: ignore[attr-defined]
            return Response(status_code=499)
        return Stream(first, lines)

    async def whole(self, request: Request, lines: AsyncIterator[bytes]) -> Response:
        first = await unless_gone(request, anext(lines))
        await lines.aclose()  # type: ignore[attr-defined]
        if first is None:
            return Response(status_code=499)
        return Response(first, media_type="application/json")


class Stream(StreamingResponse):
    """Lines of JSON; the job behind them is cancelled when the response ends, however it ends."""

    def __init__(self, first: bytes, lines: AsyncIterator[bytes]):
        super().__init__(self.content(first), media_type="application/x-ndjson")
        self.lines = lines

    async def content(self, first: bytes) -> AsyncIterator[bytes]:
        yield first + b"\n"
        try:
            async for line in self.lines:
                yield line + b"\n"
        except (InputError, Failed) as error:
            yield msgspec.json.encode({"error": str(error)}) + b"\n"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.lines.aclose()  # type: ignore[attr-defined]


def pictures_of(asked: Picture) -> Iterable[tuple[str, Picture]]:
    """The pictures of a request, each with the words that say where in it."""
    yield "", asked
    for number, picture in enumerate(getattr(asked, "beside", ())):
        yield f"beside[{number}].", picture


async def limited(request: Request) -> bytes | None:
    """The body, or None if it is too long; nothing of a client that goes away amid it."""
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                return None
    except ClientDisconnect:
        return b""
    return body


async def unless_gone(request: Request, wanted: Any) -> bytes | None:
    """What is waited for, or None as soon as the client is gone."""
    task = asyncio.ensure_future(wanted)
    gone = asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for waiting in (task, gone):
            waiting.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await waiting


async def disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def known_fields(row: Row) -> dict[str, Any]:
    return {name: value for name, value in asdict(row).items() if value is not None}


async def not_found(request: Request, error: Exception) -> Response:
    return refused(404, "there is nothing at this address")


async def not_allowed(request: Request, error: Exception) -> Response:
    return refused(405, "method: this address is asked in another way")
