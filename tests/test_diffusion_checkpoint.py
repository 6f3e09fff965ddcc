"""Checkpoints: what is damaged is named and passed over, and only the last few are kept."""

import json

import pytest
import torch

from composcope.diffusion import checkpoint


def saved(folder, *steps):
    for step in steps:
        checkpoint.save(folder, step, {"w": torch.full((50,), float(step))})


def test_the_newest_comes_back_and_old_ones_go(tmp_path):
    assert checkpoint.latest(tmp_path) is None
    saved(tmp_path, 5, 20, 110, 1000)
    step, tensors = checkpoint.latest(tmp_path)
    assert step == 1000 and torch.equal(tensors["w"], torch.full((50,), 1000.0))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{step:09d}.{kind}" for step in (20, 110, 1000) for kind in ("json", "safetensors")
    ]


def truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-7] ^= 1
    path.write_bytes(content)


def remove(path):
    path.unlink()


def garble(path):
    path.with_suffix(".json").write_text("{")


def renumber(path):
    """A note that is JSON but not a note."""
    path.with_suffix(".json").write_text(json.dumps([1]))


@pytest.mark.parametrize("damage", [truncate, flip, remove, garble, renumber])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path, capsys, damage):
    saved(tmp_path, 10, 20)
    damage(tmp_path / "000000020.safetensors")
    step, tensors = checkpoint.latest(tmp_path)
    assert step == 10 and torch.equal(tensors["w"], torch.full((50,), 10.0))
    assert "000000020.safetensors is damaged" in capsys.readouterr().err


def test_a_file_without_its_note_was_never_finished(tmp_path, capsys):
    saved(tmp_path, 10, 20)
    (tmp_path / "000000020.json").unlink()
    assert checkpoint.latest(tmp_path)[0] == 10
    assert not capsys.readouterr().err
