"""`composcope explore`: a page on which models are asked, watched and looked into."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from composcope.errors import InputError


@dataclass(frozen=True)
class Args:
    """composcope explore --open

    Serve the explorer on this machine: click places, watch models compose or fail, look at what a
    pixel looks at."""

    runs: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """Run folders or names of shipped models; none: all that ship."""
    port: int = 8765
    """Where the page is served; 0 takes a free one."""
    open: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Open the page in a browser."""
    host: str = "127.0.0.1"
    """The address to listen on; another than this machine's own needs --token."""
    token: Annotated[str | None, tyro.conf.arg(metavar="STR")] = None
    """What others must know to ask."""
    report: Path = Path("report/index.html")
    """The report that the page links to."""
    results: Path = Path("results")
    """A folder of rows that are shown beside those that ship."""


def main(args: Args) -> None:
    try:
        import uvicorn

        from composcope.explore.server import LOOPBACK, Server, Settings, bound, folders_of
    except ImportError as error:
        raise InputError(
            f"the explorer needs Starlette and uvicorn ({error}): pip install 'composcope[explore]'"
        ) from None
    from composcope.explore.worker import Stage

    if args.host not in LOOPBACK and not args.token:
        raise InputError(
            f"--host {args.host}: others could ask; give --token, a word they must know"
        )
    if args.token is not None and not (args.token.isascii() and args.token.isalnum()):
        raise InputError("--token: letters and digits only, since it is part of a link")
    shipped = Path(__file__).parents[1] / "models"
    sock = bound(args.host, args.port)
    port = sock.getsockname()[1]
    settings = Settings(
        runs=args.runs,
        host=args.host,
        port=port,
        token=args.token,
        report=args.report,
        results=args.results,
        folders=folders_of(args.runs, shipped),
    )
    shown = "127.0.0.1" if args.host in ("0.0.0.0", "::") else args.host
    name = f"[{shown}]" if ":" in shown else shown
    link = f"http://{name}:{port}/" + (f"?token={args.token}" if args.token else "")

    def ready(stage: Stage) -> None:
        if not stage.models:
            web.should_exit = True
            return
        print(f"{len(stage.models)} models: {', '.join(model.name for model in stage.models)}")
        print(f"The explorer is at {link} (Ctrl-C ends it)", flush=True)
        if args.open:
            webbrowser.open(link)

    print("composcope: loading the models ...", flush=True)
    server = Server(settings, ready)
    web = uvicorn.Server(
        uvicorn.Config(
            server.app(),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
    )
    try:
        web.run(sockets=[sock])
    except KeyboardInterrupt:
        print("The explorer has ended.")
        return
    if not server.stage.models:
        raise InputError(f"no model could be loaded: {server.stage.left_out[0]}")
