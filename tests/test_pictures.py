"""Readers of pictures and arrays: the formats allowed and no others, and one sentence for each
failure."""

import io
import os
import struct
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from composcope.arrays import read_npz
from composcope.errors import InputError
from composcope.pictures import picture_size, read_picture

ROOT = Path(__file__).parents[1] / "composcope"
COLORS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)


def test_there_is_one_reader_of_each_kind_of_file():
    """Elsewhere in the package none of the libraries' own readers is called."""
    readers = {"Image.open(": "pictures", "np.load(": "arrays", "load_file(": "tensors"}
    readers |= {"safe_open(": "tensors", "json.load(": "", "pickle.load": "edm2"}
    for path in ROOT.rglob("*.py"):
        text = path.read_text()
        for call, reader in readers.items():
            assert call not in text or path.stem == reader, f"{path} calls {call}"


def packed(form, picture=COLORS, **settings):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, form, **settings)
    return file.getvalue()


def test_a_png_is_read_as_it_was_written_from_a_file_or_bytes(tmp_path):
    (tmp_path / "a.png").write_bytes(packed("PNG"))
    assert np.array_equal(read_picture(tmp_path / "a.png"), COLORS)
    assert np.array_equal(read_picture(packed("PNG")), COLORS)
    assert picture_size(packed("PNG")) == (7, 5)


def test_gray_of_16_bits_is_read_as_its_high_bytes(tmp_path):
    gray = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    Image.fromarray(gray).save(tmp_path / "gray.png")
    assert np.array_equal(read_picture(tmp_path / "gray.png"), np.stack([gray // 256] * 3, -1))


def test_a_jpeg_is_read_nearly():
    grey = np.full((16, 16, 3), 100, np.uint8)
    assert np.abs(read_picture(packed("JPEG", grey, quality=95)).astype(int) - grey).max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_that_its_camera_kept_turned_is_read_upright(orientation):
    """By the standard's table (EXIF 2.3, tag 274), of what the first row and column are."""
    upright = np.random.default_rng(0).integers(256, size=(4, 6, 3), dtype=np.uint8)
    flips = {1: (0, 0), 2: (0, 1), 3: (1, 1), 4: (1, 0), 5: (0, 0), 6: (0, 1), 7: (1, 1), 8: (1, 0)}
    rows, columns = flips[orientation]
    kept = upright[:: 1 - 2 * rows, :: 1 - 2 * columns]
    kept = kept.transpose(1, 0, 2) if orientation >= 5 else kept
    exif = Image.Exif()
    exif[274] = orientation
    file = io.BytesIO()
    Image.fromarray(kept).save(file, "PNG", exif=exif)
    assert np.array_equal(read_picture(file.getvalue()), upright)
    assert picture_size(file.getvalue()) == (6, 4)


def test_postscript_named_png_is_not_run(tmp_path, monkeypatch):
    """Pillow would give it to Ghostscript, which runs it."""
    ran = tmp_path / "ran"
    ghostscript = tmp_path / "gs"
    ghostscript.write_text(f"#!/bin/sh\ntouch {ran}\n")
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "a.png").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    )
    with pytest.raises(InputError, match=r"a.png is neither a PNG nor a JPEG"):
        read_picture(tmp_path / "a.png")
    assert not ran.exists()


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF", "WEBP", "PPM"])
def test_other_formats_stay_closed(form):
    with pytest.raises(InputError, match="neither a PNG nor a JPEG"):
        read_picture(packed(form))


def bomb(width, height):
    """A PNG of a few bytes that claims many pixels."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(b"\0" * 100))
    return b"\x89PNG\r\n\x1a\n" + head + data + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("width", "height"), [(8193, 8192), (100_000, 100_000), (2**31 - 1, 2**31 - 1)]
)
def test_decompression_bombs_are_not_opened(width, height):
    with pytest.raises(InputError, match=r"pixels|damaged"):
        read_picture(bomb(width, height))


def test_a_bomb_is_one_sentence_without_a_warning_of_pillow():
    """Between its limit and twice that Pillow only warns, on standard error."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(InputError, match="has 10000 x 10000 pixels: more than"):
            read_picture(bomb(10_000, 10_000))
    assert said == []


@pytest.mark.parametrize("cut", [0, 8, 20, 40, 60])
def test_damaged_pictures_are_told(cut):
    with pytest.raises(InputError, match=r"damaged|neither"):
        read_picture(packed("PNG")[:cut])


def test_a_missing_picture_and_a_folder_are_told(tmp_path):
    with pytest.raises(InputError, match=r"no.png cannot be read \(No such file"):
        read_picture(tmp_path / "no.png")
    with pytest.raises(InputError, match="is not a file"):
        read_picture(tmp_path)


def test_arrays_are_read_as_they_were_written(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=COLORS, y=np.arange(3.0))
    assert np.array_equal(read_npz(tmp_path / "a.npz", "x")["x"], COLORS)
    assert set(read_npz(tmp_path / "a.npz")) == {"x", "y"}
    with pytest.raises(InputError, match=r"a.npz holds no `z`"):
        read_npz(tmp_path / "a.npz", "z")


def claiming(path, shape, dtype="<f8", data=b"\0" * 64):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", file.getvalue() + data)


@pytest.mark.parametrize("shape", [(4_000_000_000,), (2**40, 2**40), (10**6,)])
def test_what_an_array_claims_is_checked_before_it_is_made(tmp_path, shape):
    claiming(tmp_path / "a.npz", shape)
    with pytest.raises(InputError, match=r"claimed, more than a file of \d+ can hold"):
        read_npz(tmp_path / "a.npz", "x")


def test_arrays_larger_than_the_machine_are_refused(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", x=np.zeros(1000))
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    with pytest.raises(InputError, match="more than half of this machine's memory"):
        read_npz(tmp_path / "a.npz")


def test_pickles_in_arrays_are_not_opened(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="pickled objects, which are not read"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("wrong", [b"", b"PK\x03\x04", b"not a zip at all", b"\x93NUMPY\x01\x00"])
def test_damaged_archives_are_told(tmp_path, wrong):
    (tmp_path / "a.npz").write_bytes(wrong)
    with pytest.raises(InputError, match=r"a.npz is not a whole .npz file"):
        read_npz(tmp_path / "a.npz")
