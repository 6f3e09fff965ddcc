"""Pictures on disk: every layout gives the same pictures and conditions, or one sentence."""

import csv
import io
import json
import shutil
import tarfile

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from composcope.errors import InputError
from composcope.scenes import ColorCounts, Folder, LocationGrid, Rules
from composcope.scenes.condition import Vocabulary, conditioner_named
from composcope.scenes.export import Job, export
from composcope.scenes.sources import conditions, items, read_item, resized, vocabulary_of
from tests.faults.readers import tar_of_size


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """The same scenes in each of our formats."""
    root = tmp_path_factory.mktemp("exports")
    for format in ("clevr", "webdataset", "parquet"):
        export(Job(6, (40, 30), format, Rules((1, 3)), seed=4), root / format)
    return root


@pytest.mark.parametrize("format", ["webdataset", "parquet"])
@pytest.mark.parametrize("conditioner", [LocationGrid(8), ColorCounts()])
@pytest.mark.parametrize("view", ["full", "square"])
def test_shards_are_the_folder_they_were_made_with(exports, format, conditioner, view):
    one, two = (
        Folder(exports / name, 16, conditioner, "random", 3, view).batch(2, 9)
        for name in ("clevr", format)
    )
    assert torch.equal(one.images, two.images)
    assert one.condition_sets == two.condition_sets
    assert torch.equal(one.cond, two.cond)


@pytest.mark.parametrize("named", ["./{}.{}", "./v1.0/{}.{}", "{}.{:S}"])
def test_shards_may_have_names_in_folders_and_in_capitals(exports, tmp_path, named):
    """As `tar cf shard.tar .` names them, and cameras their pictures."""
    (given,) = sorted((exports / "webdataset").glob("*.tar"))
    with tarfile.open(given) as shard, tarfile.open(tmp_path / given.name, "w") as copy:
        for entry in shard:
            key, _, suffix = entry.name.partition(".")
            again = tarfile.TarInfo(named.replace("{:S}", suffix.upper()).format(key, suffix))
            again.size = entry.size
            copy.addfile(again, shard.extractfile(entry))
    found, expected = items(tmp_path), items(exports / "webdataset")
    assert [item.shows for item in found] == [item.shows for item in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(read_item(one), read_item(other))


def test_places_of_a_picture_that_was_made_smaller_are_refused(exports, tmp_path):
    shutil.copytree(exports / "clevr", tmp_path / "small")
    for file in (tmp_path / "small" / "images").iterdir():
        with Image.open(file) as picture:
            smaller = picture.resize((20, 15))
        smaller.save(file)
    with pytest.raises(InputError, match=r"outside the picture, which has 20 x 15 pixels"):
        items(tmp_path / "small")


RED = np.full((6, 8, 3), (250, 0, 0), np.uint8)
BLUE = np.full((6, 8, 3), (0, 0, 250), np.uint8)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    Image.fromarray(RED).save(tmp_path / "a.png")
    Image.fromarray(BLUE).save(tmp_path / "sub" / "b.png")
    return tmp_path


def write_jsonl(folder, *rows):
    (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_csv(folder, *rows):
    with open(folder / "metadata.csv", "w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def both(data):
    """What each picture of a folder of two shows, by whether it is red."""
    batch = data.batch(0, 2)
    found = batch.images, batch.condition_sets
    return {bool(image[0, 0, 0] > 0): row for image, row in zip(*found, strict=True)}


@pytest.mark.parametrize("write", [write_jsonl, write_csv])
def test_words_of_metadata(folder, write):
    write(
        folder,
        {"file_name": "a.png", "tags": "warm; small cat", "kind": "x"},
        {"file_name": "sub/b.png", "tags": '["cold", "warm"]', "kind": "y"},
    )
    found = vocabulary_of(folder, "tags")
    assert found == ("cold", "small cat", "warm")
    data = Folder(folder, 8, Vocabulary(found), field="tags")
    assert both(data) == {True: ("warm", "small cat"), False: ("cold", "warm")}
    assert sorted(data.batch(0, 2).cond.tolist()) == [[0, 1, 1], [1, 0, 1]]
    assert vocabulary_of(folder, "kind") == ("x", "y")


@pytest.mark.parametrize("write", [write_jsonl, write_csv])
def test_metadata_may_begin_with_a_byte_order_mark(folder, write):
    write(folder, {"file_name": "a.png", "kind": "x"})
    (list_,) = folder.glob("metadata.*")
    list_.write_bytes(b"\xef\xbb\xbf" + list_.read_bytes())
    assert vocabulary_of(folder, "kind") == ("x",)


def test_conditions_of_one_picture_in_every_spelling():
    for value, want in (
        (["a", "b"], ["a", "b"]),
        ("a", ["a"]),
        ("a b", ["a b"]),
        ("a, b;", ["a", "b"]),
        ('["a, b"]', ["a, b"]),
        (7, [7]),
        (None, []),
        ("", []),
    ):
        assert conditions({"x": value}, None, "here") == want
        assert conditions({"x": value, "y": 1}, "x", "here") == want


@pytest.mark.parametrize("write", [write_jsonl, write_csv])
def test_places_of_metadata(folder, write):
    """Fractions of the picture; of its square, if the run looks at that."""
    write(
        folder,
        {"file_name": "a.png", "places": "[[0.25, 0.5], [0.5, 0.75]]"},
        {"file_name": "sub/b.png", "places": "[[0.05, 0.5]]"},
    )
    full = both(Folder(folder, 8, LocationGrid(8)))
    assert full == {True: ((0.25, 0.5), (0.5, 0.75)), False: ((0.05, 0.5),)}
    square = Folder(folder, 8, LocationGrid(8), view="square").batch(0, 2).condition_sets
    ours = ((0.5 - 0.25 * 8 / 6, 0.5), (0.5, 0.75))
    np.testing.assert_allclose(square, [ours, ours])  # of the other picture the place is cut off


def test_colours_of_metadata(folder):
    write_jsonl(
        folder,
        {"file_name": "a.png", "color": "red"},
        {"file_name": "sub/b.png", "color": ["blue", "gray"]},
    )
    assert both(Folder(folder, 8, ColorCounts())) == {True: ("red",), False: ("blue", "gray")}


@pytest.mark.parametrize(
    ("row", "conditioner", "sentence"),
    [
        ({"words": ["x"]}, "color", "row 1: the field `file_name` is missing"),
        ({"file_name": "c.png", "words": []}, "color", "row 1: there is no picture 'c.png'"),
        ({"file_name": "../a.png", "words": []}, "color", r"there is no picture '\.\./a.png'"),
        ({"file_name": "a.png"}, "color", "beside `file_name` a field with the conditions"),
        ({"file_name": "a.png", "x": 1, "y": 2}, "color", "has the conditions: x, y"),
        ({"file_name": "a.png", "words": ["rot"]}, "color", "row 1: there is no colour 'rot'"),
        ({"file_name": "a.png", "words": [{}]}, "color", "row 1: {} is not a word"),
        ({"file_name": "a.png", "words": ["red"]}, "grid", r"'red' is not \[u, v\]"),
        ({"file_name": "a.png", "words": [[0.5, 2]]}, "grid", "row 1: the location"),
        ({"file_name": "a.png", "words": [[0.5]]}, "grid", "row 1: the location"),
        ({"file_name": "a.png", "words": "[["}, "grid", "row 1: "),
    ],
)
def test_wrong_metadata_is_one_sentence(folder, row, conditioner, sentence):
    write_jsonl(folder, row)
    with pytest.raises(InputError, match=sentence):
        Folder(folder, 8, conditioner_named(conditioner, 8)).batch(0, 1)


def test_names_in_files_do_not_lead_out_of_their_folder(tmp_path):
    outside = tmp_path / "outside.png"
    Image.fromarray(RED).save(outside)
    data = tmp_path / "data"
    (data / "images" / "new").mkdir(parents=True)
    for name, split in (
        (str(outside), "new"),
        ("../../outside.png", "new"),
        ("outside.png", "../.."),
    ):
        scene = {"objects": [], "image_filename": name, "split": split}
        (data / "CLEVR_scenes.json").write_text(json.dumps({"scenes": [scene]}))
        with pytest.raises(
            InputError, match=r"image_filename` is missing or not|there is no image"
        ):
            items(data)
    write_jsonl(data, {"file_name": str(outside), "words": ["x"]})
    with pytest.raises(InputError, match=r"row 1: there is no picture '/.*outside\.png'"):
        items(data)


def test_pictures_without_a_word_about_them_are_one_sentence(folder):
    with pytest.raises(
        InputError, match=r"does not say what its pictures show: it has no metadata"
    ):
        items(folder)


def test_wrong_tables_are_one_sentence(folder):
    (folder / "metadata.csv").write_text("file_name,words\na.png\n")
    with pytest.raises(InputError, match="row 1: not as many fields as in the first"):
        items(folder)
    (folder / "metadata.csv").write_bytes(b"file_name,words\n\xff\xfe,1\n")
    with pytest.raises(InputError, match=r"metadata\.csv: not a table"):
        items(folder)
    (folder / "metadata.jsonl").write_text('{"file_name": "a.png", "w": 1}\n[1]\n')
    with pytest.raises(InputError, match=r"metadata\.jsonl, line 2"):
        items(folder)
    with pytest.raises(InputError, match="is not a folder"):
        items(folder / "a.png")
    write_jsonl(folder, {"file_name": "a.png", "w": "cat"})
    with pytest.raises(InputError, match="there is no field 'v'; the fields are w"):
        vocabulary_of(folder, "v")
    write_jsonl(folder, {"file_name": "a.png", "w": []})
    with pytest.raises(InputError, match="has no words"):
        vocabulary_of(folder)


def test_wrong_shards_are_one_sentence(exports, tmp_path):
    tar = tmp_path / "scenes-000000.tar"
    tar.write_bytes(b"no tar" * 200)
    with pytest.raises(InputError, match=r"scenes-000000\.tar is not a shard"):
        items(tmp_path)
    with tarfile.open(tar, "w") as shard:
        entry = tarfile.TarInfo("0.png")
        entry.size = 3
        shard.addfile(entry, io.BytesIO(b"png"))
    with pytest.raises(InputError, match=r"0: the picture has no scene, 0\.json"):
        items(tmp_path)
    # An archive that leads back into itself, or before its beginning.
    for size in (-512, -(10**6)):
        for kind in (tarfile.REGTYPE, tarfile.GNUTYPE_SPARSE):
            tar.write_bytes(tar_of_size(size, kind))
            with pytest.raises(InputError, match=r"scenes-000000\.tar is not a shard \("):
                items(tmp_path)
    tar.unlink()
    parquet = tmp_path / "scenes-000000.parquet"
    parquet.write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"scenes-000000\.parquet is not a shard"):
        items(tmp_path)
    pyarrow.parquet.write_table(pyarrow.table({"image": [1], "scene": ["{}"]}), parquet)
    with pytest.raises(InputError, match=r"scenes-000000\.parquet is not a shard"):
        items(tmp_path)
    table = pyarrow.parquet.read_table(next((exports / "parquet").glob("*.parquet")))
    scenes = table.column("scene").to_pylist()
    latin = pyarrow.array([b"\xff"] * len(scenes)).view(pyarrow.utf8())
    pyarrow.parquet.write_table(table.set_column(2, "scene", latin), parquet)
    with pytest.raises(InputError, match=r"scenes-000000\.parquet is not a shard .*'utf-8'"):
        items(tmp_path)
    images = table.column("image").to_pylist()
    images[-1] = None
    pyarrow.parquet.write_table(
        table.set_column(1, "image", pyarrow.array(images, table.schema.field("image").type)),
        parquet,
    )
    with pytest.raises(InputError, match=r"row \d+: the cell of the picture is empty"):
        items(tmp_path)
    with pytest.raises(InputError, match="holds scenes, not words"):
        vocabulary_of(exports / "webdataset")


def test_what_is_not_a_picture_is_named(folder):
    (folder / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    write_jsonl(folder, {"file_name": "a.png", "words": "x"})
    with pytest.raises(InputError, match=r"a\.png is neither a PNG nor a JPEG"):
        Folder(folder, 8, Vocabulary(("x",))).batch(0, 1)


def test_a_square_is_cut_from_the_middle():
    picture = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)
    assert np.array_equal(resized(picture, (6, 6), "square"), picture[:, 1:7])
    tall = picture.transpose(1, 0, 2)
    assert np.array_equal(resized(tall, (6, 6), "square"), tall[1:7])
    assert resized(picture, (8, 6)) is picture
    assert resized(picture, (4, 3)).shape == (3, 4, 3)


def test_a_vocabulary_is_words_of_ones_own():
    vocabulary = Vocabulary(("cat", "small dog"))
    assert vocabulary.parse("small dog, cat") == ("small dog", "cat")
    assert Vocabulary(("a", "b")).parse("b a") == ("b", "a")
    assert vocabulary([("cat", "cat"), ()]).tolist() == [[2, 0], [0, 0]]
    assert vocabulary.left_out(("cat", "small dog")).tolist() == [[1, 1], [0, 1], [1, 0]]
    assert {*vocabulary.ask(2, 1)[0]} == {"cat", "small dog"}
    with pytest.raises(InputError, match="there is no word 'cow'; the words are cat, small dog"):
        vocabulary.parse("cow")
    for names in ((), ("a", "a")):
        with pytest.raises(InputError, match="a list of different words"):
            Vocabulary(names)
    with pytest.raises(InputError, match=r"the conditioners are grid, .*vocabulary, none"):
        conditioner_named("words", 4)
    assert conditioner_named("none", 4) is None


def test_pictures_of_shards_are_read_one_by_one(exports):
    for format in ("clevr", "webdataset", "parquet"):
        pictures = [read_item(item) for item in items(exports / format)]
        assert [picture.shape for picture in pictures] == [(30, 40, 3)] * 6
