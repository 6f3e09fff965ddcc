"""What is served, where, and to whom; importing it needs no server."""

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from composcope.files import SHIPPED
from composcope.options import Conditioner, Word


@dataclass(frozen=True)
class Settings:
    runs: Positional[tuple[str, ...]] = ()
    """Run folders or names of shipped models; none: all that ship."""
    conditioner: Conditioner = None
    port: int = 8765
    """Where the page is served; 0 takes a free one."""
    host: str = "127.0.0.1"
    """The address to listen on; another than this machine's own needs --token."""
    token: Word = None
    """What others must know to ask."""
    report: Path = Path("report/index.html")
    """The report that the page links to."""
    results: Path = Path("results")
    """A folder of rows that are shown beside those that ship."""

    @property
    def folders(self) -> dict[str, Path]:
        """The folder of each run by its name: where its rows are."""
        named = {Path(run).resolve().name: Path(run) for run in self.runs if Path(run).is_dir()}
        ours = {folder.name: folder for folder in SHIPPED.iterdir() if folder.is_dir()}
        return {**ours, **named}
