"""`composcope locality` on untrained runs of the smoke preset: rows, files, going on after a stop,
and errors."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from untrained import untrained

from composcope.cli.locality import Args, main
from composcope.errors import InputError
from composcope.locality import measure
from composcope.locality.measure import MAPS, locality, pixels_at
from composcope.report.locality import correlation, dots, scatter, shares
from composcope.results import Row, read_rows, where
from composcope.results.arrays import read_arrays
from composcope.runs import load


@pytest.fixture
def asked(tmp_path: Path) -> Args:
    run = str(untrained(tmp_path / "exp1", "exp1", 0.5))
    return Args(run, noise_levels=2, num=2, out=tmp_path / "results" / "locality.jsonl")


def numbers(rows):
    return [(row.key, row.value, row.low, row.high, row.n) for row in rows]


def test_rows_maps_and_pictures_appear_and_a_measured_level_is_not_measured_again(
    asked, monkeypatch, capsys
):
    main(asked)
    rows = read_rows(asked.out)
    count = {
        name: len(where(rows, what=f"locality/{name}"))
        for name in ("square", "influence", "near_share", "overlap")
    }
    assert count == {"square": 2 * 5, "influence": 2 * 5 * 4, "near_share": 2, "overlap": 3}
    (scalar,) = where(rows, what="locality/conditional_locality")
    assert 0 <= scalar.value <= 1
    assert (scalar.run, scalar.snapshot, scalar.trained) == ("exp1", "final", 3)
    assert (scalar.states, scalar.asked, scalar.K, scalar.n) == ("trajectory", "paper", 4, 2)
    assert scalar.weights == load(asked.run).fingerprint
    (folder,) = asked.out.with_suffix("").iterdir()
    levels = sorted(folder.glob("sigma-*.npz"))
    assert [path.name for path in levels] == ["sigma-0.0020.npz", "sigma-80.0000.npz"]
    assert {path.name for path in folder.glob("*.png")} == {"heatmaps.png", "curves.png"}
    printed = capsys.readouterr().out
    assert (
        "conditional locality" in printed and f"rows: {asked.out}" in printed and "next:" in printed
    )

    again = []
    real = measure.level_maps

    def watched(*given):
        again.append(given[2])
        return real(*given)

    monkeypatch.setattr(measure, "level_maps", watched)
    levels[0].unlink()
    main(asked)
    assert again == [pytest.approx(0.002)]
    assert numbers(read_rows(asked.out)) == numbers(rows)


def test_kept_levels_of_something_else_are_not_taken(tmp_path):
    model = load(untrained(tmp_path / "exp1", "exp1", 0.5))
    locality(model, levels=1, num=2, keep=tmp_path / "kept")
    with pytest.raises(InputError, match="was made with num = 2, not 1; keep"):
        locality(model, levels=1, num=1, keep=tmp_path / "kept")
    (path,) = (tmp_path / "kept").glob("sigma-*.npz")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="does not hold kept arrays"):
        locality(model, levels=1, num=2, keep=tmp_path / "kept")


def test_kept_maps_are_the_means_that_figure_2_is_drawn_from(asked):
    main(asked)
    (folder,) = asked.out.with_suffix("").iterdir()
    maps = read_arrays(folder / MAPS)
    level = read_arrays(folder / "sigma-80.0000.npz")
    assert maps["sigmas"][0] == 80 and maps["pictures"].shape == (2, 16, 16, 3)
    mean = level["influences"].mean(0)
    np.testing.assert_allclose(maps["influences"][0], mean, rtol=1e-3, atol=1e-7)
    gradient = level["gradients"].mean(0)
    shown = gradient / gradient.max((1, 2), keepdims=True)
    np.testing.assert_allclose(maps["gradients"][0], shown, rtol=1e-3, atol=1e-6)
    assert list(maps["conditions"][:2]) == ["0.65,0.65", "0.65,0.25"]


def test_json_is_on_standard_output_alone(asked, capsys):
    main(Args(asked.run, noise_levels=1, num=1, json=True, out=asked.out))
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == len(read_rows(asked.out))
    assert not any("low" in line for line in printed)  # one sample has no interval


def test_a_model_of_which_nothing_is_asked_is_measured_on_named_images(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (3, 20, 20, 3)).astype(np.uint8)
    np.savez(tmp_path / "images.npz", images=images)
    run = untrained(tmp_path / "cifar", "images", 0.5)
    out = tmp_path / "locality.jsonl"
    given = tmp_path / "images.npz"
    main(Args(str(run), noise_levels=1, num=2, states="noised", images=given, out=out))
    rows = read_rows(out)
    assert {row.what for row in rows} == {"locality/square", "locality/energy"}
    assert {row.pixel for row in rows} == {(8, 8), (4, 4), (12, 12)}
    assert {row.K for row in rows} == {0}


def test_colours_are_measured_without_places(tmp_path, capsys):
    run = str(untrained(tmp_path / "color", "color", 0.5))
    out = tmp_path / "locality.jsonl"
    main(Args(run, asked="red blue green", noise_levels=1, num=2, out=out))
    rows = read_rows(out)
    influence = where(rows, what="locality/influence")
    assert {row.condition for row in influence} == {"red", "blue", "green"}
    assert {row.setting for row in rows} == {"asked for red blue green; 1 noise levels"}
    assert not where(rows, what="locality/near_share")
    assert "no places" in capsys.readouterr().out


def test_a_model_with_an_intervention_is_measured_and_its_rows_say_so(tmp_path):
    run = str(untrained(tmp_path / "exp1", "exp1", 0.5))
    out = tmp_path / "locality.jsonl"
    main(Args(run, noise_levels=1, num=1, out=out))
    main(Args(run, noise_levels=1, num=1, intervention="local", radius=0.25, out=out))
    rows = where(read_rows(out), what="locality/conditional_locality")
    wide = where(rows, intervention="local", radius=0.25)
    assert len(rows) == 2 and len(wide) == 1
    assert wide[0].value > where(rows, intervention=None)[0].value


def test_a_patch_local_model_and_a_list_are_measured_and_patches_end_where_they_should(tmp_path):
    for experiment in ("exp2l", "exp3"):
        keep = tmp_path / experiment
        model = load(untrained(tmp_path / experiment / "run", experiment, 0.5))
        locality(model, ((0.1, 0.1), (0.9, 0.6)), levels=1, num=1, keep=keep)
        level = read_arrays(keep / "sigma-80.0000.npz")
        maps = level["influences"][0]
        gradients = level["gradients"][0]
        if experiment == "exp2l":
            # Patches of 3 x 3 cells: 4 pixels a cell, a condition acts one cell around its own.
            assert (maps[0, 8:] == 0).all() and (maps[0, :, 8:] == 0).all()
            assert (maps[0, :8, :8] > 0).any()
            assert (gradients[0, 8:] == 0).all() and (gradients[0, :, 8:] == 0).all()
        else:
            assert (maps > 0).mean() > 0.99


def test_pixels_looked_at_are_rows_and_columns():
    places = np.array([[(0.65, 0.25), (1.0, 1.0)]])
    assert pixels_at(places, (32, 32)) == ((8, 20), (31, 31), (16, 16))


def test_the_scatter_pairs_k_max_with_locality_of_the_same_weights():
    rows = []
    models = [("a", "early", "1"), ("a", "final", "2"), ("b", "final", "3"), ("c", "final", "4")]
    for k, (run, snapshot, weights) in enumerate(models):
        model = {"run": run, "snapshot": snapshot, "weights": weights}
        model |= {"trained": 3, "asked": "paper"}
        at = {"rule": "paper", "tolerance": 0.1}
        rows.append(Row("length/k_max", 3 + k, 2 + k, 4 + k, 48, **model, **at))
        rows.append(Row("length/k_max", 9 - k, **model, rule="strict", tolerance=0.1))
        rows.append(Row("length/k_max", 9, **model, rule="paper", tolerance=0.05))
        rows.append(Row("length/k_max", 9, **model, **at, intervention="local", radius=0.2))
        for K in (6, 9):
            rows.append(Row("length/found", K * k / 4, **model, K=K, tolerance=0.1))
        if run != "c":
            model |= {"states": "trajectory", "K": 4}
            what = "locality/conditional_locality"
            rows.append(Row(what, 0.2 + 0.2 * k, 0.1, 0.9, 16, **model))
            rows.append(Row(what, 0.9 - 0.2 * k, n=1, **model, seed=1))
            rows.append(Row(what, 0.5, n=99, **model, intervention="local"))
    old = {"run": "b", "snapshot": "final", "weights": "0", "asked": "paper"}
    rows.append(Row(what, 0.1, n=99, states="trajectory", **old))
    points = dots(rows, "paper")
    want = [("a", "early", 0, -1), ("a", "final", 1, 0), ("b", "final", 2, 1)]
    assert [(p.run, p.snapshot, p.reach.value, p.reach.low) for p in points] == want
    assert [p.locality.value for p in points] == pytest.approx([0.2, 0.4, 0.6])
    assert correlation(points).value == pytest.approx(1.0)
    assert correlation(dots(rows, "strict")).value == pytest.approx(-1.0)
    assert correlation(points[:2]) is None
    filled = dots(rows, "filled")
    assert [p.reach.value for p in filled] == [0, 1.5, 3]
    panels = scatter({"paper": points, "filled": filled}).axes
    assert [panel.get_title().endswith(" 1], 3 dots") for panel in panels] == [True, True]
    assert panels[1].get_xlabel() == "places filled of 6"


def test_bad_input_is_one_sentence(tmp_path, asked):
    images = untrained(tmp_path / "images", "images", 0.5)
    for args, words in (
        (Args(str(tmp_path / "nothing")), "no run"),
        (Args(asked.run, num=0), "at least 1"),
        (Args(asked.run, asked="2,0.5", out=asked.out), "within 0 to 1"),
        (
            Args(asked.run, intervention="near", out=asked.out),
            "no intervention 'near'; .* are local",
        ),
        (Args(asked.run, intervention="own", radius=0.1, out=asked.out), "'own' has no radius"),
        (Args(asked.run, images=tmp_path, out=asked.out), "give --states noised"),
        (Args(str(images), asked="red", out=asked.out), "images takes no conditions"),
    ):
        with pytest.raises(InputError, match=words):
            main(args)
    assert not asked.out.with_suffix("").exists()
    with pytest.raises(InputError, match=r"^states is one of noised, trajectory"):
        locality(load(asked.run), states="blurred")


def test_a_panel_of_shares_without_values_is_drawn_empty():
    """Conditions without places have no share near them, and one alone has no overlap."""
    rows = [Row("locality/overlap", None, run="color", sigma=sigma) for sigma in (80.0, 1.0, 0.1)]
    figure = Figure()
    shares(figure.subplots(), rows)
    figure.savefig(io.BytesIO())
