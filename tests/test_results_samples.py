"""Samples come back as they were kept, and what is not such a file is refused in a sentence."""

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.results.arrays import write_arrays
from composcope.results.samples import Record, Samples, gather_samples, read_samples, write_samples


def samples(run="exp1", asked=(((0.25, 0.5),), ("red", "blue")), **about):
    images = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 4, 6, 3)
    met, places = [[True], [True, False]], [[(0.2, 0.5)], [(0.1, 0.1), (0.9, 0.1)]]
    record = Record([list(one) for one in asked], met, places, ["red"])
    return Samples(
        {"run": run, **about}, images, record, images[::-1].copy(), np.array([80.0, 0.0])
    )


def test_what_is_kept_comes_back(tmp_path):
    kept = samples(intervention="local")
    write_samples(tmp_path / "samples.npz", kept)
    back = read_samples(tmp_path / "samples.npz")
    assert back.about == {"run": "exp1", "intervention": "local"} and back.record == kept.record
    np.testing.assert_array_equal(back.images, kept.images)
    np.testing.assert_array_equal(back.frames, kept.frames)
    np.testing.assert_array_equal(back.sigmas, kept.sigmas)


def test_images_are_found_by_their_number_of_conditions():
    kept = samples()
    assert [kept.of(K) for K in (0, 1, 2)] == [[], [0], [1]]
    assert [kept.extra(i) for i in (0, 1)] == [0, 1]


def test_those_of_later_folders_come_first(tmp_path):
    for folder in ("shipped", "own"):
        write_samples(tmp_path / folder / "any" / "samples-local.npz", samples(run=folder))
    found = gather_samples([tmp_path / "shipped", tmp_path / "own"])
    assert [one.about["run"] for one in found] == ["own", "shipped"]


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "samples.npz"
    write_arrays(path, {}, {"images": np.zeros((1, 2, 2, 3), np.uint8)})
    with pytest.raises(InputError, match="frames"):
        read_samples(path)
    write_samples(path, samples(asked=(("red",), ("red",))))
    with pytest.raises(InputError, match="differ"):
        read_samples(path)
