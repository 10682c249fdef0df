"""Images in `.npy` arrays: their axes, values and channels, alone and in a folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from PIL import Image

from contrastive_core.data import datasets, image_cache, image_sets
from contrastive_core.data.dataset import ImageForm
from contrastive_core.data.folder_selection import folder_preview
from contrastive_core.data.image_decoding import decode_image, read_header

RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)


@cases(
    ("shape", "layout", "note"),
    [
        ((16, 16), RAMP, ""),
        ((1, 16, 16), RAMP[None], ""),
        ((16, 16, 1), RAMP[..., None], ""),
        ((3, 16, 16), np.stack([RAMP] * 3), ""),
        ((16, 16, 3), np.stack([RAMP] * 3, -1), ""),
        ((5, 16, 16), np.stack([RAMP] * 5), "5 channels; only the first three were read"),
        ((16, 16, 2), np.stack([RAMP] * 2, -1), "2 channels; only the first was read"),
    ],
)
@cases("scale", [np.uint8(1), np.uint16(257), np.float32(1 / 255)])
def test_arrays(tmp_path: Path, shape: tuple[int, ...], layout: np.ndarray, note: str, scale: Any) -> None:
    assert layout.shape == shape
    np.save(tmp_path / "a.npy", layout.astype(scale.dtype) * scale)
    array, remark = decode_image(tmp_path / "a.npy", 16, channels=1)
    assert np.array_equal(array[0], RAMP)
    assert remark == note


def test_a_folder_of_arrays_and_what_was_taken_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "arrays"
    folder.mkdir()
    for i in range(10):
        np.save(folder / f"{i}.npy", np.full((5 if i % 2 else 4, 8, 12), i, np.uint8))
    np.save(folder / "table.npy", np.zeros((4000, 5)))
    np.save(folder / "objects.npy", np.array([{}]), allow_pickle=True)
    sets = [datasets.load(f"folder:{folder}", s, form=ImageForm(8)) for s in ("train", "test")]
    assert {i for data in sets for i in data.ids} == {f"{i}.npy" for i in range(10)}
    reasons = dict(pair for data in sets for pair in data.skipped)
    assert reasons["table.npy"] == "an array of shape (4000, 5) is not an image"
    assert "objects.npy" in reasons
    assert "5 channels; only the first three were read" in sets[0].left_out
    assert {data.images.shape[1] for data in sets} == {3}
    Image.fromarray(RAMP).save(folder / "picture.png")  # beside pictures arrays are something else
    assert datasets.load(f"folder:{folder}").ids == ["picture.png"]


@cases("resize", ["crop", "pad"])
@cases("channels", [2, 4, 7])
def test_every_channel_of_an_array_is_kept(tmp_path: Path, channels: int, resize: str) -> None:
    """Each as if it were a gray image by itself."""
    array = np.random.default_rng(0).integers(0, 256, (channels, 24, 40), np.uint8)
    np.save(tmp_path / "first.npy", array)
    np.save(tmp_path / "last.npy", array.transpose(1, 2, 0))
    for name in ("first", "last"):
        got, note = decode_image(tmp_path / f"{name}.npy", 16, channels, resize)
        assert (got.shape, note) == ((channels, 16, 16), "")
        for plane, expected in zip(got, array, strict=True):
            np.save(tmp_path / "one.npy", expected)
            assert np.array_equal(plane, decode_image(tmp_path / "one.npy", 16, 1, resize)[0][0])
    with pytest.raises(ValueError, match=f"with {channels} channels; the other arrays have 9"):
        decode_image(tmp_path / "first.npy", 16, 9)
    Image.fromarray(RAMP).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="a picture; an array of 5 channels is expected"):
        decode_image(tmp_path / "a.png", 16, 5)


@cases(
    ("shape", "channels"),
    [
        ((200, 64, 64), 200),
        ((64, 64, 200), 200),
        ((64, 64, 64), 64),
        ((12, 30, 50), 12),
        ((30, 50, 12), 12),
        ((40, 50, 60), 40),
        ((60, 50, 40), 40),
    ],
)
def test_which_axis_is_that_of_the_channels(tmp_path: Path, shape: tuple[int, ...], channels: int) -> None:
    np.save(tmp_path / "a.npy", np.zeros(shape, np.uint8))
    assert read_header(tmp_path / "a.npy").channels == channels


def test_many_images_in_one_array_are_none(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((1025, 8, 8), np.uint8))
    with pytest.raises(ValueError, match="is not an image"):
        read_header(tmp_path / "a.npy")


def test_a_folder_of_arrays_has_the_channels_that_all_have(tmp_path: Path) -> None:
    """Those of the training images, for both splits; what has others is left out."""
    for i in range(6):
        part = tmp_path / ("test" if i > 3 else "train")
        part.mkdir(exist_ok=True)
        np.save(part / f"{i}.npy", np.full((5, 8, 8), i, np.uint8))
    np.save(tmp_path / "test/six.npy", np.zeros((6, 8, 8), np.uint8))
    (tmp_path / "train/bad.npy").write_bytes(b"no array")
    train, test = (datasets.load(f"folder:{tmp_path}", s) for s in ("train", "test"))
    assert train.images.shape == (4, 5, 8, 8)
    assert test.images.shape == (2, 5, 8, 8)
    why = "an array with 6 channels; the other arrays have 5"
    assert dict(test.skipped) == {"six.npy": why}
    assert folder_preview(str(tmp_path)).channels == 5
    assert folder_preview(str(tmp_path)).images.shape[1] == 3


@cases(
    ("counts", "expected"), [([1, 1], 1), ([1, 2], 1), ([2, 2], 2), ([1, 5], 3), ([5, 3], 3), ([4, 6], 3), ([3, 3], 3)]
)
def test_the_channels_that_a_folder_has(tmp_path: Path, counts: list[int], expected: int) -> None:
    for i, count in enumerate(counts):
        np.save(tmp_path / f"{i}.npy", np.zeros((count, 8, 8), np.uint8))
    listing = image_sets.listings_of(f"folder:{tmp_path}")
    files = [*listing["train"].files, *listing["test"].files]
    assert image_cache.common_channels(files) == expected
