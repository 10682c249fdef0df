"""Images that are decoded in training: the same pixels as of the cache, and which of both is chosen."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from contrastive_core.base.errors import BadSetting
from contrastive_core.data import datasets, image_decoding
from contrastive_core.data.dataset import ImageForm
from contrastive_core.data.datasets import load_streamed
from contrastive_core.data.image_cache import LIMIT, space_of, unread_files
from contrastive_core.data.overrides import ImageRows
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.settings import with_cache

FORM = ImageForm(16)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of JPEG files, of several sizes."""
    rng = np.random.default_rng(0)
    for i in range(24):
        path = tmp_path / "set" / "ab"[i % 2] / f"{i:02d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20 + i, 40, 3), np.uint8)).save(path)
    return tmp_path / "set"


@pytest.mark.parametrize("workers", [1, 2])
def test_pixels_labels_and_ids_are_those_of_the_cache(
    folder: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_decoding, "processes", lambda: workers)
    name = f"folder:{folder}"
    for split in ("train", "test"):
        cached, streamed = datasets.load(name, split, form=FORM), load_streamed(name, split, FORM)
        assert (streamed.ids, streamed.classes, streamed.form) == (cached.ids, cached.classes, FORM)
        assert (streamed.labels == cached.labels).all()
        images = np.asarray(cached.images)
        assert streamed.images.shape == images.shape
        np.testing.assert_array_equal(np.asarray(streamed.images), images)
        for rows in (np.array([2, 0, 2]), [1], slice(1, 3), 3, -1, np.array([], np.int64)):
            np.testing.assert_array_equal(streamed.images[rows], images[rows])
        np.testing.assert_array_equal(streamed.images[[1, 2], 0, 3:5], images[[1, 2], 0, 3:5])
        np.testing.assert_array_equal(streamed.images[1, 0], images[1, 0])
        some = ImageRows(streamed.images, np.array([3, 1]))
        np.testing.assert_array_equal(some[np.array([1])], images[[1]])
        assert unread_files(some) == ""
        streamed.images.pool.close()


def test_fingerprints_change_with_the_files_and_not_with_their_place(folder: Path) -> None:
    def fingerprint(place: Path, form: ImageForm = FORM) -> str:
        return load_streamed(f"folder:{place}", "train", form).fingerprint

    before = fingerprint(folder)
    moved = folder.rename(folder.with_name("moved"))
    assert fingerprint(moved) == before
    assert fingerprint(moved, ImageForm(8)) != before
    (moved / "a" / "00.jpg").rename(moved / "b" / "00.jpg")
    assert fingerprint(moved) != before


@pytest.mark.parametrize("content", [b"", b"no picture", None], ids=["empty", "text", "cut"])
def test_a_file_that_lies_is_a_black_image_and_is_named(folder: Path, content: bytes | None) -> None:
    path = folder / "a" / "02.jpg"
    path.write_bytes(path.read_bytes()[:200] if content is None else content)
    dataset = load_streamed(f"folder:{folder}", "train", FORM)
    if "a/02.jpg" not in dataset.ids:
        dataset = load_streamed(f"folder:{folder}", "test", FORM)
    row = dataset.ids.index("a/02.jpg")
    assert dataset.images[row].max() == 0
    assert dataset.images[np.array([row, (row + 1) % len(dataset)])][1].max() > 0
    assert "02.jpg" in unread_files(dataset.images)


def test_the_cache_is_used_where_it_is_allowed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = space_of(24, 16)
    assert needed == 128 + 24 * 3 * 16 * 16

    def chosen(cache: str = "auto") -> str:
        return with_cache(TrainConfig("simclr", f"folder:{folder}", image_size=16, cache=cache)).cache

    assert chosen() == "memory-map"
    monkeypatch.setenv(LIMIT, str(needed / 1e9))
    assert chosen() == "memory-map"
    monkeypatch.setenv(LIMIT, str((needed - 1) / 1e9))
    assert (chosen(), chosen("memory-map")) == ("stream", "memory-map")
    for wrong in ("many", "-1", "nan"):
        monkeypatch.setenv(LIMIT, wrong)
        with pytest.raises(BadSetting, match="must be a number of GB"):
            chosen()
    datasets.load(f"folder:{folder}", form=FORM)
    assert chosen() == "memory-map"  # it is there
