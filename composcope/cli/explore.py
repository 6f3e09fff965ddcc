"""composcope explore --open

Serve the explorer on this machine: click places, watch models compose or fail, look at what a
pixel looks at."""

from dataclasses import dataclass

from tyro.conf import FlagCreatePairsOff

from composcope.errors import InputError
from composcope.explore.settings import Settings
from composcope.study.shipped import check_folders


@dataclass(frozen=True)
class Args(Settings):
    open: FlagCreatePairsOff[bool] = False  # Open the page in a browser.


def main(args: Args) -> None:
    check_folders("--results", [args.results])
    try:
        from composcope.explore.serving import serve
    except ImportError as error:
        raise InputError(
            f"the explorer needs Starlette and uvicorn ({error}): pip install 'composcope[explore]'"
        ) from None
    serve(args, args.open)
