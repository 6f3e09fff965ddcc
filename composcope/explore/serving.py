"""The explorer as a process: a socket, a link to it, and the server until somebody ends it."""

import asyncio
import errno
import socket
import webbrowser
from contextlib import suppress
from dataclasses import replace
from types import FrameType

import uvicorn

from composcope.errors import InputError, Stopped
from composcope.explore.guard import LOOPBACK
from composcope.explore.server import Server
from composcope.explore.settings import Settings
from composcope.explore.worker import Stage
from composcope.scenes.condition import add_outside


def serve(settings: Settings, open_page: bool = False) -> None:
    """Serve until a signal; an InputError where it would be open to others, or has no models."""
    if settings.host not in LOOPBACK and not settings.token:
        raise InputError(
            f"--host {settings.host}: others could ask; give --token, a word they must know"
        )
    token = settings.token
    if token is not None and not (token.isascii() and token.isalnum()):
        raise InputError("--token: letters and digits only, since it is part of a link")
    if settings.conditioner:
        add_outside(settings.conditioner)  # what is wrong with it is told here
    sock = listening_socket(settings.host, settings.port)
    settings = replace(settings, port=sock.getsockname()[1])

    def ready(stage: Stage) -> None:
        if not stage.models:
            web.should_exit = True
            return
        print(f"models: {', '.join(model.name for model in stage.models)}")
        print(f"The explorer is at {link(settings)} (Ctrl-C ends it)", flush=True)
        if open_page:
            webbrowser.open(link(settings))

    print("composcope: loading the models ...", flush=True)
    server = Server(settings, ready)
    web = Web(
        server,
        uvicorn.Config(
            server.app(),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        ),
    )
    try:
        web.run(sockets=[sock])
    except (KeyboardInterrupt, Stopped):
        print("The explorer has ended.")
        return
    if not server.stage.models:
        raise InputError(f"no model could be loaded: {server.stage.left_out[0]}")


class Web(uvicorn.Server):
    """Ends the streams when it is to end: uvicorn would wait for them, and then cut them off with a
    traceback."""

    def __init__(self, server: Server, config: uvicorn.Config):
        super().__init__(config)
        self.server = server

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        with suppress(RuntimeError):  # before there is a loop, nobody waits
            loop = asyncio.get_running_loop()
            loop.call_soon_threadsafe(self.server.workshop.dismiss, "the server has ended")
        super().handle_exit(sig, frame)


def link(settings: Settings) -> str:
    """The address of the page, as a browser on this machine takes it."""
    shown = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host
    name = f"[{shown}]" if ":" in shown else shown
    token = f"?token={settings.token}" if settings.token else ""
    return f"http://{name}:{settings.port}/{token}"


def listening_socket(host: str, port: int) -> socket.socket:
    """A listening socket, or an InputError that says why there is none."""
    if not 0 <= port < 2**16:
        raise InputError(f"--port {port}: ports go from 0 to {2**16 - 1}; choose another --port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        # The address stands in the sentence already.
        why = str(error.strerror or error).partition(" (while")[0]
        other = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise InputError(
            f"cannot listen on {host}, port {port} ({why}); choose another {other}"
        ) from None
