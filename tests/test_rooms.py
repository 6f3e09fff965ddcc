"""The import table of the design: which room may import which. Modules of the root are for all."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEAVES = {
    "arrays",
    "chance",
    "compiled",
    "errors",
    "files",
    "imports",
    "options",
    "pictures",
    "progress",
    "signals",
    "tensors",
}
ROOMS = {
    "scenes": set(),
    "nets": set(),
    "diffusion": set(),
    "results": set(),
    "theory": {"diffusion", "nets", "results"},  # circles are drawn by a trained network
    "locality": {"diffusion", "results"},
    "evaluation": {"scenes", "diffusion", "results"},
    "features": {"diffusion", "results", "locality", "adapters"},
    "adapters": {"diffusion", "nets"},
    "runs": {"nets", "diffusion", "scenes"},
    "study": {"runs", "results"},
    "report": {"study", "results"},
}
ANY = set(ROOMS)
DOORS = {"cli", "explore", "experiments"}  # where rooms meet; none of them imports another, but:
TABLE = {leaf: LEAVES for leaf in LEAVES} | ROOMS | {door: ANY for door in DOORS}
TABLE["cli"] = ANY | {"explore"}  # the command that starts the explorer


def imported(source: str) -> set[str]:
    """Top-level rooms of composcope that this source imports, `torch` if it does, and relative
    imports as '.'."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            stem = "." if node.level else node.module
            names = (
                [f"{stem}.{alias.name}" for alias in node.names] if stem == "composcope" else [stem]
            )
        for name in names:
            head, _, tail = name.partition(".")
            found.add(tail.partition(".")[0] if head == "composcope" else head)
    return found & (ANY | LEAVES | DOORS | {"torch", ""})


def violations(room: str, source: str) -> set[str]:
    allowed = TABLE[room] | LEAVES | {room, "torch"}
    return imported(source) - (allowed - ({"torch"} if room == "report" else set()))


def test_every_file_keeps_to_the_table():
    for file in ROOT.glob("composcope/**/*.py"):
        room = file.relative_to(ROOT).with_suffix("").parts[1]
        if room not in ("__init__", "__main__"):
            assert not violations(room, file.read_text()), (
                f"{file} imports {violations(room, file.read_text())}"
            )


def test_the_check_can_fail():
    assert violations("scenes", "from composcope.nets import unet") == {"nets"}
    assert violations("report", "import torch") == {"torch"}
    assert violations("theory", "from composcope import scenes") == {"scenes"}
    assert violations("nets", "from . import layers") == {""}
    assert not violations("runs", "from composcope.scenes.scene import Scene")
