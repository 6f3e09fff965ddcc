"""composcope features color

Cosines between the mean activations of concepts (equation 3), layer by layer, with intervals:
the conditions of a trained model, or prompts of SDXL, for which the words' influence on places
is measured as well. The small text-conditioned model that comes with composcope, one prompt and
one image of it, and SDXL:
composcope features --sdxl text_control
composcope features --sdxl text_control --prompt "a red cube on the left"
composcope features --sdxl stabilityai/stable-diffusion-xl-base-1.0 --device cuda --dtype bf16
What is measured is kept a prompt and a seed at a time: the same command goes on where it was
stopped."""

from dataclasses import dataclass, field
from pathlib import Path

from composcope import options
from composcope.errors import InputError
from composcope.features import features, sdxl
from composcope.features.measure import GROUPS, no_denormals
from composcope.features.profile import MATRICES
from composcope.features.prompts import DTYPES, PAPER_CONCEPTS, TextSettings, prompts_for
from composcope.features.text import measure_text
from composcope.files import write_pngs
from composcope.locality import maps_of
from composcope.report import features as figures
from composcope.report.locality import heatmaps
from composcope.results import Row, add_rows, check_out, own_folder, read_arrays, tell_rows
from composcope.runs import load, own_device, usable


@dataclass(frozen=True)
class Args:
    run: options.RunOrNone = None
    sdxl: options.Pipeline = None
    device: str = field(default_factory=own_device)  # cpu or cuda.
    num: int = 100  # Samples of each condition of a run.
    snapshot: options.Snapshot = "final"
    conditioner: options.Conditioner = None
    seed: int = 0  # Of the noise; sample i has seed + i, the same for all concepts.
    out: options.Out = Path("results/features.jsonl")
    json: options.Json = False
    text: TextSettings = field(default_factory=TextSettings)


def main(args: Args) -> None:
    check_out(args.out)
    if (args.run is None) == (args.sdxl is None):
        raise InputError("give either a RUN, or --sdxl MODEL")
    with no_denormals():
        rows, folder, text = of_run(args) if args.run is not None else of_text(args)
    add_rows(args.out, rows)
    then = f"composcope report --results {args.out.parent}"
    tell_rows(rows, args.out, args.json, f"means and pictures: {folder}", then, text)


def of_run(args: Args) -> tuple[list[Row], Path, str]:
    """Rows, the folder of means and pictures, and the table to print."""
    args.text.check_unused()
    model = load(str(args.run), args.snapshot, args.device, args.conditioner)
    name = f"{model.name}-{args.snapshot}"
    folder = own_folder(args.out, name, model.fingerprint, args.num, args.seed)
    rows = features(model, args.num, args.seed, folder, min(GROUPS, args.num), args.device)
    write_pngs(folder, figures.run_pictures(model.name, read_arrays(folder / MATRICES), rows))
    return rows, folder, figures.features_table(rows)


def of_text(args: Args) -> tuple[list[Row], Path, str]:
    """The same of a text-to-image model: features of its concepts, then places and words."""
    options.check_unused(args, "num snapshot conditioner", "is of a RUN, not of --sdxl (--seeds)")
    source = Path(sdxl.pipeline_folder(str(args.sdxl)))
    asked = prompts_for(source, args.text.prompts)
    model = sdxl.load(str(args.sdxl), usable(args.device), DTYPES[args.text.dtype])
    own = args.text.settings(asked, str(args.sdxl), args.seed)
    folder = own_folder(args.out, source.name, *own)
    rows, words, found = measure_text(model, asked, args.text, args.seed, folder, source.name)
    shown = {"places": heatmaps(maps_of(found)), "words": figures.words_over_time(words)}
    text = "\n".join([found.table(), *figures.words_found(words)])
    if rows:
        kept = {maps: read_arrays(folder / "features" / maps / MATRICES) for maps in figures.KINDS}
        shown |= figures.text_pictures(kept, rows, PAPER_CONCEPTS)
        text = f"{figures.features_table(rows)}\n\n{asked.locality}\n{text}"
    write_pngs(folder, shown)
    return [*rows, *words], folder, text
