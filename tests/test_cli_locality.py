"""`composcope locality` on untrained runs of the smoke preset: rows, files, going on after a stop, and errors."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from composcope.cli import locality
from composcope.cli.locality import Args, looked_at, main
from composcope.diffusion.pixels import Pixels
from composcope.errors import InputError
from composcope.results import Row, add, read
from composcope.runs.config import configure
from composcope.runs.model import Model


def run_folder(folder: Path, experiment: str) -> Path:
    """A run with random weights, its gains opened so that conditions act."""
    config = configure(experiment, "smoke")
    model = Model(config, Pixels(torch.zeros(3, 1, 1), 1.0))
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    weights |= {name: torch.full_like(value, 0.5) for name, value in weights.items() if name.endswith("gain")}
    folder.mkdir(parents=True)
    config.save(folder / "config.json")
    save_file(weights, folder / "model.safetensors")
    return folder


@pytest.fixture
def asked(tmp_path: Path) -> Args:
    run = str(run_folder(tmp_path / "exp1", "exp1"))
    return Args(run, noise_levels=2, num=2, out=tmp_path / "results" / "locality.jsonl")


def test_rows_maps_and_pictures_appear_and_a_measured_level_is_not_measured_again(asked, monkeypatch, capsys):
    main(asked)
    rows = read(asked.out)
    count = {
        name: sum(row.claim == f"locality/{name}" for row in rows) for name in ("square", "influence", "near_share")
    }
    assert count == {"square": 2 * 5, "influence": 2 * 5 * 4, "near_share": 2}
    (scalar,) = [row for row in rows if row.claim == "locality/conditional_locality"]
    assert 0 <= scalar.value <= 1 and scalar.setting["trained"] == 3 and scalar.setting["states"] == "trajectory"
    (folder,) = asked.out.with_suffix("").iterdir()
    levels = sorted(folder.glob("sigma-*.npz"))
    assert [path.name for path in levels] == ["sigma-0.0020.npz", "sigma-80.0000.npz"]
    assert {path.name for path in folder.glob("*.png")} == {"heatmaps.png", "curves.png"}
    assert "conditional locality" in capsys.readouterr().out

    measured = []

    def watched(*given):
        measured.append(given[2])
        return real(*given)

    real = locality.measure
    monkeypatch.setattr(locality, "measure", watched)
    levels[0].unlink()
    main(asked)
    assert measured == [pytest.approx(0.002)]
    assert read(asked.out) == rows


def test_json_is_on_standard_output_alone(asked, capsys):
    main(Args(asked.run, noise_levels=1, num=1, json=True, out=asked.out))
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [Row(**line) for line in printed] == read(asked.out)
    assert {line["low"] for line in printed} == {None}  # one sample has no interval


def test_a_model_of_which_nothing_is_asked_is_measured_on_named_images(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 20, 20, 3)).astype(np.uint8)
    np.savez(tmp_path / "images.npz", images=images)
    run = run_folder(tmp_path / "cifar", "images")
    out = tmp_path / "locality.jsonl"
    main(Args(str(run), noise_levels=1, num=2, states="noised", images=tmp_path / "images.npz", out=out))
    assert {row.claim for row in read(out)} == {"locality/square", "locality/energy"}
    assert {tuple(row.setting["pixel"]) for row in read(out)} == {(8, 8), (4, 4), (12, 12)}


def test_a_patch_local_model_and_a_list_are_measured_and_patches_end_where_they_should(tmp_path):
    for experiment in ("exp2l", "exp3"):
        out = tmp_path / experiment / "locality.jsonl"
        run = str(run_folder(tmp_path / experiment / "run", experiment))
        main(Args(run, noise_levels=1, num=1, locations=((0.1, 0.1), (0.9, 0.6)), out=out))
        with np.load(next(out.with_suffix("").glob("*/sigma-80.0000.npz"))) as kept:
            maps, gradients = kept["influences"][0], kept["gradients"][0]
        if experiment == "exp2l":  # patches of 3 x 3 cells: 4 pixels a cell, a condition acts one cell around its own
            assert (maps[0, 8:] == 0).all() and (maps[0, :, 8:] == 0).all() and (maps[0, :8, :8] > 0).any()
            assert (gradients[0, 8:] == 0).all() and (gradients[0, :, 8:] == 0).all()
        else:
            assert (maps > 0).mean() > 0.99


def test_pixels_looked_at_are_rows_and_columns():
    assert looked_at([(0.65, 0.25), (1.0, 1.0)], 32) == ((8, 20), (31, 31), (16, 16))


def test_the_scatter_pairs_k_max_with_locality_of_the_same_run_and_snapshot(tmp_path, capsys):
    rows = []
    for k, (run, snapshot) in enumerate([("a", "early"), ("a", "final"), ("b", "final"), ("c", "final")]):
        setting = {"snapshot": snapshot, "conditions": "paper", "num": 8}
        rows.append(Row("length/k_max_paper", run, 3 + k, setting, low=2 + k, high=4 + k))
        rows.append(Row("length/k_max_strict", run, 9 - k, setting))
        rows.append(Row("length/k_max_paper", run, 9, setting | {"intervention": "local"}))
        if run != "c":
            where = {"snapshot": snapshot, "trained": 3, "chance": 0.14}
            rows.append(Row("locality/conditional_locality", run, 0.2 + 0.2 * k, where | {"num": 8}, 0, 0.1, 0.9))
            rows.append(Row("locality/conditional_locality", run, 0.9 - 0.2 * k, where | {"num": 1}, 0))
    rows.append(Row("locality/conditional_locality", "b", 0.1, where | {"num": 99, "K": 12}, 0))
    add(tmp_path / "rows.jsonl", rows)
    out = tmp_path / "made" / "locality.jsonl"
    main(Args(scatter=tmp_path, out=out))
    for row, rule, correlation in zip(read(out), ("paper", "strict"), (1.0, -1.0), strict=True):
        assert (row.claim, row.setting["dots"]) == (f"locality/spearman_{rule}", 3)
        assert row.value == pytest.approx(correlation)
        assert (out.with_suffix("") / f"scatter-{rule}.png").stat().st_size > 1000
    assert "3 dots" in capsys.readouterr().err


def test_bad_input_is_one_sentence(tmp_path, asked):
    for args, words in (
        (Args(), "either a RUN, or --scatter"),
        (Args(str(tmp_path / "nothing")), "no run"),
        (Args(asked.run, num=0), "at least 1"),
        (Args(asked.run, locations=((2.0, 0.5),), out=asked.out), "not a .u, v."),
        (Args(scatter=tmp_path), "needs 3"),
        (Args(str(run_folder(tmp_path / "color", "color"))), "colours, which have no place"),
    ):
        with pytest.raises(InputError, match=words):
            main(args)
