"""Files of scenes: the same bytes however often the job was stopped, and nothing of anyone else's
touched."""

import errno
import io
import json
import tarfile

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from composcope.errors import InputError
from composcope.scenes import Rules, load_clevr, render, sample
from composcope.scenes import export as module
from composcope.scenes.export import WRITERS, Job, export


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "SHARD", 5)
    monkeypatch.setattr(module, "CHUNK", 3)


def job(form="clevr", num=12):
    return Job(num, (24, 18), form, Rules((1, 2)), seed=9)


def contents(folder):
    return {
        str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()
    }


class Stopped(BaseException):
    """Ctrl-C."""


def stop_at(monkeypatch, index):
    """Let the export stop after having rendered image `index`."""
    made = module.to_struct

    def stopping(scene, i, size):
        if i == index:
            raise Stopped
        return made(scene, i, size)

    monkeypatch.setattr(module, "to_struct", stopping)


@pytest.mark.parametrize("form", WRITERS)
def test_a_job_that_is_stopped_and_run_again_makes_the_same_bytes(form, tmp_path, monkeypatch):
    export(job(form), tmp_path / "whole")
    for index in (1, 7, 11):
        with monkeypatch.context() as patch, pytest.raises(Stopped):
            stop_at(patch, index)
            export(job(form), tmp_path / "stopped")
        assert not list((tmp_path / "stopped").rglob("*.part"))
    (tmp_path / "stopped" / ".job.json.elsewhere.1.part").write_text("half")
    before = {
        f: f.stat().st_mtime_ns
        for f in (tmp_path / "stopped").rglob("*.*")
        if f.suffix in (".png", ".tar")
    }
    export(job(form), tmp_path / "stopped")
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")
    assert all(f.stat().st_mtime_ns == when for f, when in before.items())


def test_clevr_files_hold_the_scenes_and_their_images(tmp_path):
    export(job(), tmp_path)
    scenes = [sample(9, i, Rules((1, 2))) for i in range(12)]
    assert load_clevr(tmp_path / "CLEVR_scenes.json") == load_clevr(tmp_path) == scenes
    for i, image in enumerate(render(scenes, (24, 18))):
        assert np.array_equal(
            np.asarray(Image.open(tmp_path / "images" / f"CLEVR_new_{i:06d}.png")), image
        )
    struct = json.loads((tmp_path / "CLEVR_scenes.json").read_text())["scenes"][3]
    seen = np.array([row["pixel_coords"][:2] for row in struct["objects"]])
    assert np.allclose(seen, np.array(scenes[3].places) * (24, 18))


def test_shards_hold_the_same_as_the_clevr_files(tmp_path):
    for form in WRITERS:
        export(job(form), tmp_path / form)
    structs = json.loads((tmp_path / "clevr" / "CLEVR_scenes.json").read_text())["scenes"]
    pngs = [
        (tmp_path / "clevr" / "images" / struct["image_filename"]).read_bytes()
        for struct in structs
    ]
    files = {}
    for shard in sorted((tmp_path / "webdataset").glob("*.tar")):
        with tarfile.open(shard) as tar:
            files |= {entry.name: tar.extractfile(entry).read() for entry in tar}
    assert [files[f"{i:08d}.png"] for i in range(12)] == pngs
    assert [json.loads(files[f"{i:08d}.json"]) for i in range(12)] == structs
    table = [
        r
        for f in sorted((tmp_path / "parquet").glob("*.parquet"))
        for r in pyarrow.parquet.read_table(f).to_pylist()
    ]
    assert [row["image"]["bytes"] for row in table] == pngs
    assert [json.loads(row["scene"]) for row in table] == structs
    assert Image.open(io.BytesIO(table[0]["image"]["bytes"])).size == (24, 18)


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    export(job(), tmp_path / "mine")
    before = contents(tmp_path / "mine")
    with pytest.raises(InputError, match="holds other scenes"):
        export(job(num=13), tmp_path / "mine")
    assert contents(tmp_path / "mine") == before
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("cat")
    with pytest.raises(InputError, match="is not empty"):
        export(job(), tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.png").read_text() == "cat"


def test_impossible_rules_leave_no_folder_behind(tmp_path):
    with pytest.raises(InputError, match="no scene of 40 objects"):
        export(Job(3, 8, rules=Rules((1, 40))), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("made", [False, True])
def test_rules_that_a_later_scene_cannot_meet_lose_nothing_and_leave_no_claim(
    tmp_path, monkeypatch, made
):
    def writer(job, out, tick):
        if made:
            (out / "first.png").write_text("a picture")
        raise InputError("no scene of 12 objects was found")

    monkeypatch.setitem(WRITERS, "clevr", writer)
    with pytest.raises(InputError, match="no scene of 12"):
        export(job(), tmp_path / "new")
    left = {path.name for path in (tmp_path / "new").glob("*")}
    assert left == ({"first.png", "job.json"} if made else set())


@pytest.mark.parametrize(
    "wrong", [{"num": 0}, {"num": 1, "size": (0, 3)}, {"num": 1, "format": "jpg"}]
)
def test_a_job_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InputError):
        Job(**wrong)


def test_a_full_disk_says_where_and_leaves_whole_files_only(tmp_path, monkeypatch):
    write = module.Path.write_bytes

    def full(path, content):
        if "000004" in path.name:
            write(path, content[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(module.Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as caught:
        export(job(), tmp_path / "full")
    assert caught.value.filename == str(tmp_path / "full" / "images" / "CLEVR_new_000004.png")
    left = {f.name: f for f in (tmp_path / "full" / "images").iterdir()}
    assert {f"CLEVR_new_{i:06d}.png" for i in range(4)} <= set(left)
    assert not [name for name in left if "000004" in name or not name.endswith(".png")]
    assert all(Image.open(file).load() for file in left.values())


def test_pixels_in_memory_do_not_grow_with_the_job(tmp_path, monkeypatch):
    most = []
    rendered = module.render
    monkeypatch.setattr(
        module, "render", lambda scenes, size: most.append(len(scenes)) or rendered(scenes, size)
    )
    export(job("webdataset", 11), tmp_path)
    assert max(most) <= 3
    assert sum(most) == 11


def test_large_images_are_held_one_at_a_time(tmp_path):
    assert module.chunk(Job(num=10, size=8192)) == 1
    assert module.chunk(Job(num=10, size=(512, 2048))) == 3  # as many as small ones in these tests
