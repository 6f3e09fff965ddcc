"""Configurations: the table of the paper, changes by name, and the copy a run folder keeps."""

import math
from dataclasses import asdict

import pytest
import torch

from composcope.errors import InputError
from composcope.nets.unet import UNet
from composcope.runs import data
from composcope.runs.config import (
    ARCHITECTURES,
    EXPERIMENTS,
    RECIPES,
    Config,
    configure,
    difference,
)
from composcope.runs.model import conditioner_of, network


def test_experiments_are_numbered_as_in_version_3():
    assert EXPERIMENTS["exp2"] == ("grid", "one", "global")
    assert EXPERIMENTS["exp2l"] == ("grid", "one", "local")
    assert EXPERIMENTS["exp3"] == ("list", "all", "global")
    assert EXPERIMENTS["exp3l"] == ("list", "all", "local")


def test_the_paper_preset_is_the_papers():
    config = configure("exp1", "paper")
    assert (config.recipe.batch, config.recipe.images) == (2048, 128 * 2**20)
    assert (config.architecture.resolution, config.architecture.grid_size) == (
        128,
        16,
    ) and config.jitter
    with torch.device("meta"):  # shapes without numbers
        weights = sum(
            weight.numel() for weight in network(config, conditioner_of(config)).parameters()
        )
    assert round(weights / 1e6) == 124


@pytest.mark.parametrize("scale", list(ARCHITECTURES), ids="-".join)
def test_every_row_of_the_table_makes_a_network(scale):
    preset, net = scale
    # Narrow: the shapes are what is tested.
    config = configure("exp1", preset, {"net": net, "width": 16, "head": 16})
    unet = network(config, conditioner_of(config))
    assert isinstance(unet, UNet) == (net == "global")
    assert RECIPES[scale].checkpoint_every % RECIPES[scale].log_every == 0
    assert RECIPES[scale].sigma_rel in RECIPES[scale].sigma_rels


def test_the_laptop_networks_are_small():
    for net, low, high in (("global", 1.3e6, 1.7e6), ("local", 0.5e6, 1.5e6)):
        config = configure("exp2", "laptop", {"net": net})
        weights = network(config, conditioner_of(config)).parameters()
        assert low < sum(weight.numel() for weight in weights) < high


def test_the_laptop_grid_is_the_papers_and_has_room_for_all_cells_in_its_embedding():
    for experiment in ("exp1", "exp2", "exp2l"):
        a = configure(experiment, "laptop").architecture
        assert a.grid_size == 16
        assert a.emb is not None and a.emb * a.width > a.grid_size**2


def test_changes_reach_their_field_and_unknown_ones_are_refused():
    config = configure(
        "exp2", "smoke", {"labels": "random", "lr": 0.5, "radius": 3, "objects": (1, 5)}
    )
    assert (config.labels, config.objects) == ("random", (1, 5))
    assert (config.recipe.lr, config.architecture.radius) == (0.5, 3)
    for wrong, sentence in (({"colour": 1}, "no setting 'colour'"),):
        with pytest.raises(InputError, match=sentence):
            configure("exp1", "smoke", wrong)
    with pytest.raises(InputError, match="no experiment 'exp9'; the experiments are exp1"):
        configure("exp9")
    with pytest.raises(
        InputError, match="no preset 'tiny'; the presets are smoke, laptop, small, paper"
    ):
        configure("exp1", "tiny")


def test_the_copy_in_the_run_folder_is_the_configuration(tmp_path):
    config = configure("exp3l", "small", {"objects": (2, 6)})
    config.save(tmp_path / "config.json")
    assert Config.load(tmp_path / "config.json") == config
    assert difference(config, config) is None
    other = configure("exp3l", "small", {"objects": (2, 6), "lr": 1.0})
    assert difference(config, other) == f"lr = {config.recipe.lr} there, 1.0 asked for"
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(
        InputError, match=r"config.json: Object missing required field `conditioner`"
    ):
        Config.load(tmp_path / "config.json")


def test_no_two_fields_share_a_name():
    """A change is by name alone."""
    said = asdict(configure("exp1"))
    names = [*said, *said["architecture"], *said["recipe"]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "changes",
    [
        {"images": 0}, {"batch": -1}, {"lr": float("nan")}, {"decay": 0}, {"P_std": -1.0}, {"accumulate": 0},
        {"width": 0}, {"grid_size": -4}, {"emb": 0}, {"radius": -1}, {"radius": 1000}, {"threads": 0},
        {"gate": 2}, {"gate": -1},
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_refused_by_name(changes):
    (name,) = changes
    with pytest.raises(InputError, match=f"^{name} = "):
        configure("exp2l", "smoke", changes)


def test_the_papers_recipe_has_the_rate_and_the_noise_of_edm2(monkeypatch):
    """In units of sigma_data: EDM2's pixel models have ln sigma of mean -0.8 at sigma_data 0.5."""
    monkeypatch.setattr(data, "MEASURED", 256)
    config = configure("exp1", "paper")
    alike = configure("exp1", "paper", {"resolution": 32})  # the same scenes, quicker
    _, sigma_data = data.pixel_constants(alike, data.images_of(alike))
    assert config.recipe.lr == 0.012
    assert config.recipe.P_mean - math.log(sigma_data) == pytest.approx(
        -0.8 - math.log(0.5), abs=0.1
    )


def test_heads_that_do_not_divide_a_level_are_refused():
    config = configure("exp1", "smoke", {"head": 5})
    with pytest.raises(InputError, match=r"^16 channels cannot be cut into 3 equal attention"):
        network(config, conditioner_of(config))
