"""Decoding of pictures and `.npy` arrays: their values, axes and channels, and the processes that decode them."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from cases import cases
from PIL import Image, ImageOps

from contrastive_core.base.sandbox import Sandbox
from contrastive_core.base.storage import ROOT
from contrastive_core.data import datasets, image_cache, image_decoding, image_listings
from contrastive_core.data.dataset import ImageForm
from contrastive_core.data.folder_selection import folder_preview
from contrastive_core.data.image_decoding import HEADER, decode_chunk, decode_image, decode_sandboxed, read_header

RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)
VALUES = [RAMP, RAMP.astype(">u2") * 257, RAMP.astype(np.int64), RAMP / np.float32(255), RAMP.astype(np.float64)]


@cases(
    ("count", "note"),
    [
        (0, ""),  # no axis of channels
        (1, ""),
        (3, ""),
        (5, "5 channels; only the first three were read"),
        (2, "2 channels; only the first was read"),
    ],
)
@cases("axis", [0, -1])
def test_values_are_scaled_and_unread_channels_are_told(tmp_path: Path, axis: int, count: int, note: str) -> None:
    for values in VALUES:
        np.save(tmp_path / "a.npy", np.stack([values] * count, axis) if count else values)
        array, told = decode_image(tmp_path / "a.npy", 16, channels=1)
        assert np.array_equal(array[0], RAMP), values.dtype
        assert told == note
    np.save(tmp_path / "mask.npy", RAMP > 9)
    assert np.array_equal(decode_image(tmp_path / "mask.npy", 16, 1)[0][0], 255 * (RAMP > 9))


@cases("resize", ["crop", "pad"])
@cases("channels", [2, 4, 7])
def test_every_channel_of_an_array_is_kept(tmp_path: Path, channels: int, resize: str) -> None:
    """Each as if it were a gray image by itself."""
    array = np.random.default_rng(0).integers(0, 256, (channels, 24, 40), np.uint8)
    for name, saved in {"first": array, "last": array.transpose(1, 2, 0)}.items():
        np.save(tmp_path / f"{name}.npy", saved)
        got, note = decode_image(tmp_path / f"{name}.npy", 16, channels, resize)
        assert (got.shape, note) == ((channels, 16, 16), "")
        for plane, expected in zip(got, array, strict=True):
            np.save(tmp_path / "one.npy", expected)
            assert np.array_equal(plane, decode_image(tmp_path / "one.npy", 16, 1, resize)[0][0])
    Image.fromarray(RAMP).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="a picture; an array of 5 channels is expected"):
        decode_image(tmp_path / "a.png", 16, 5)


@cases(
    ("shape", "size"),
    [
        ((200, 64, 64), (64, 64, 200)),
        ((64, 64, 200), (64, 64, 200)),
        ((12, 30, 50), (50, 30, 12)),
        ((30, 50, 12), (50, 30, 12)),
        ((40, 50, 60), (60, 50, 40)),
        ((60, 50, 40), (50, 60, 40)),
        ((1025, 8, 8), None),  # many images
        ((4000, 5), None),
        ((2, 3, 8, 8), None),
        ((0, 8, 8), None),
        ((8,), None),
    ],
)
def test_which_axis_is_that_of_the_channels(tmp_path: Path, shape: tuple[int, ...], size: tuple | None) -> None:
    np.save(tmp_path / "a.npy", np.zeros(shape, np.uint8))
    if size:
        assert read_header(tmp_path / "a.npy") == size
    else:
        with pytest.raises(ValueError, match=r"is an array of numbers .* got uint8 \(\d"):
            read_header(tmp_path / "a.npy")


def test_a_folder_of_arrays_has_the_channels_that_all_have(tmp_path: Path) -> None:
    """Those of the training images, for both splits; what has others is left out."""
    for i in range(6):
        part = tmp_path / ("test" if i > 3 else "train")
        part.mkdir(exist_ok=True)
        np.save(part / f"{i}.npy", np.full((5, 8, 8), i, np.uint8))
    np.save(tmp_path / "test/six.npy", np.zeros((6, 8, 8), np.uint8))
    np.save(tmp_path / "train/objects.npy", np.array([{}]), allow_pickle=True)
    np.save(tmp_path / "train/words.npy", np.full((8, 8), "a"))
    (tmp_path / "train/bad.npy").write_bytes(b"no array")
    train, test = (datasets.load(f"folder:{tmp_path}", s) for s in ("train", "test"))
    assert (train.images.shape, test.images.shape) == ((4, 5, 8, 8), (2, 5, 8, 8))
    assert {name for name, _ in train.skipped} == {"objects.npy", "words.npy", "bad.npy"}
    assert dict(test.skipped) == {"six.npy": "an array with 6 channels; the other arrays have 5"}
    preview = folder_preview(str(tmp_path))
    assert (preview.channels, preview.images.shape[1]) == (5, 3)
    np.save(tmp_path / "train/0.npy", np.zeros((4, 8, 8), np.uint8))
    mixed = datasets.load(f"folder:{tmp_path}", form=ImageForm(8))
    assert mixed.images.shape == (4, 3, 8, 8)
    assert "5 channels; only the first three were read" in mixed.left_out
    Image.fromarray(RAMP).save(tmp_path / "train/picture.png")  # beside pictures arrays are something else
    assert datasets.load(f"folder:{tmp_path / 'train'}").ids == ["picture.png"]


@cases(
    ("counts", "expected"), [([1, 1], 1), ([1, 2], 1), ([2, 2], 2), ([1, 5], 3), ([5, 3], 3), ([4, 6], 3), ([3, 3], 3)]
)
def test_the_channels_that_a_folder_has(tmp_path: Path, counts: list[int], expected: int) -> None:
    for i, count in enumerate(counts):
        np.save(tmp_path / f"{i}.npy", np.zeros((count, 8, 8), np.uint8))
    listings = image_listings.listings_of_folder(str(tmp_path)).values()
    assert image_cache.common_channels([file for listing in listings for file in listing.files]) == expected


# --- processes that decode ---

ORIENTATION = 0x0112  # of EXIF


def written(folder: Path, n: int = 20) -> Path:
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for i in range(n):
        Image.fromarray(rng.integers(0, 256, (9, 12, 3), np.uint8)).save(folder / f"{i:03d}.png")
    return folder


def test_a_process_that_decodes_images_imports_no_torch(tmp_path: Path) -> None:
    path = written(tmp_path / "set", 1) / "000.png"
    (tmp_path / "rows").write_bytes(bytes(HEADER + 3 * 64))
    script = (
        "import sys\nfrom contrastive_core.data.image_decoding import decode_chunk\n"
        "answer = decode_chunk(sys.argv[1], 0, [sys.argv[2]], (8, 3, 'crop'))\n"
        "assert not answer['failed'], answer\n"
        "print([m for m in ('torch', 'scipy') if m in sys.modules])"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "rows"), str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    row = np.fromfile(tmp_path / "rows", np.uint8, offset=HEADER).reshape(3, 8, 8)
    assert np.array_equal(row, decode_image(path, 8, 3)[0])


@cases("mode", ["L", "P", "RGB", "CMYK"])
@cases("turn", [1, 2, 5, 6, 8])
def test_pixels_are_those_of_pillows_own_steps(tmp_path: Path, mode: str, turn: int) -> None:
    """No copy is made that is not needed; the values are those of the steps with all copies."""
    noise = np.random.default_rng(0).integers(0, 256, (30, 44, 3), np.uint8)
    exif, path = Image.Exif(), tmp_path / f"a.{'png' if mode == 'P' else 'jpg'}"
    exif[ORIENTATION] = turn
    Image.fromarray(noise).convert(mode).save(path, exif=exif)
    for channels, to in ((1, "L"), (3, "RGB")):
        with Image.open(path) as image:
            image.draft(None, (32, 32)) if image.format == "JPEG" else None
            upright = ImageOps.exif_transpose(image).convert(to)
        fitted = np.asarray(ImageOps.fit(upright, (16, 16), Image.Resampling.BILINEAR))
        expected = fitted[None] if channels == 1 else fitted.transpose(2, 0, 1)
        assert np.array_equal(decode_image(path, 16, channels)[0], expected)


def test_a_folder_named_from_where_one_stands_is_decoded_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that decode stand in another folder."""
    written(tmp_path / "set")
    whole = datasets.load(f"folder:{tmp_path / 'set'}", form=ImageForm(8))
    monkeypatch.setattr(image_cache, "CHUNK", 4)
    monkeypatch.setattr(image_cache, "FEW", 0)
    monkeypatch.setattr(image_decoding, "processes", lambda: 2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", "caches")
    near = datasets.load("folder:set", form=ImageForm(8))
    assert (near.fingerprint, near.skipped) == (whole.fingerprint, [])


def test_rows_that_cannot_be_written_are_no_fault_of_the_pictures(tmp_path: Path) -> None:
    path = os.fspath(written(tmp_path / "set", 1) / "000.png")
    with closing(Sandbox(decode_chunk)) as sandbox, pytest.raises(FileNotFoundError):
        decode_sandboxed(sandbox, str(tmp_path / "none" / "rows"), 0, [path], (8, 1, "crop"))
