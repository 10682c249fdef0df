"""Data sets: digits and shapes, folders in every form, torchvision's files in their formats."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from contrastive_core.data import datasets, shapes
from contrastive_core.errors import Damaged, NotDownloaded, UnknownName
from contrastive_core.paths import data_home


def test_digits_are_split_by_class_and_stay_the_same() -> None:
    train, test = (datasets.load("digits", s) for s in ("train", "test"))
    assert train.images.shape == (1437, 1, 8, 8)
    assert len(test) == 360
    assert not set(train.ids) & set(test.ids)
    assert np.abs(np.bincount(test.labels) - 36).max() <= 1
    assert datasets.load("digits", "train").fingerprint == train.fingerprint
    assert train.fingerprint != test.fingerprint


def test_shapes_are_made_alike_from_a_seed() -> None:
    a, labels, factors = shapes.make(64, seed=3)
    b, _, _ = shapes.make(64, seed=3)
    assert np.array_equal(a, b)
    assert a.shape == (64, 3, 32, 32)
    assert np.bincount(labels).tolist() == [8] * 8
    assert set(factors) >= {"hue", "background_hue", "x", "y", "radius", "angle", "texture"}
    assert not np.array_equal(a, shapes.make(64, seed=4)[0])
    spread = [np.corrcoef(factors["hue"], labels == c)[0, 1] for c in range(8)]
    assert np.abs(spread).max() < 0.5  # color does not tell the class


def test_names() -> None:
    with pytest.raises(UnknownName, match="known: digits, shapes, cifar10"):
        datasets.load("imagenet")
    with pytest.raises(NotDownloaded, match="170 MB"):
        datasets.load("cifar10")
    with pytest.raises(ValueError, match="split must be"):
        datasets.load("digits", "validation")


def picture(path: Path, color: tuple[int, int, int], size: tuple[int, int] = (20, 16)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).save(path)


def test_a_folder_per_class(tmp_path: Path) -> None:
    for i in range(10):
        picture(tmp_path / "cats" / f"{i}.png", (i, 0, 0))
        picture(tmp_path / "dogs" / f"{i}.png", (0, i, 0))
    (tmp_path / "dogs" / "broken.jpg").write_bytes(b"\xff\xd8 not an image")
    (tmp_path / "dogs" / "notes.txt").write_text("no image")
    train, test = (datasets.load(f"folder:{tmp_path}", s) for s in ("train", "test"))
    assert train.classes == ("cats", "dogs")
    assert len(train) + len(test) == 20
    assert set(train.ids) | set(test.ids) == {
        f"{c}/{i}.png" for c in train.classes for i in range(10)
    }
    assert train.images.shape[1:] == (3, 16, 16)
    assert [name for name, _ in train.skipped + test.skipped] == ["dogs/broken.jpg"]
    where = train.ids.index("cats/3.png") if "cats/3.png" in train.ids else None
    if where is not None:
        assert train.images[where, 0].max() == 3


def test_a_flat_folder_has_no_labels(tmp_path: Path) -> None:
    for i in range(10):
        picture(tmp_path / f"{i}.jpg", (20 * i, 0, 0))
    train = datasets.load(f"folder:{tmp_path}")
    assert train.classes == ()
    assert set(train.labels) == {-1}


def test_train_and_test_folders(tmp_path: Path) -> None:
    for split, n in (("train", 6), ("test", 3)):
        for c in ("a", "b"):
            for i in range(n):
                picture(tmp_path / split / c / f"{i}.png", (i, i, i))
    assert len(datasets.load(f"folder:{tmp_path}", "train")) == 12
    assert len(datasets.load(f"folder:{tmp_path}", "test")) == 6


def test_a_changed_folder_is_read_again(tmp_path: Path) -> None:
    for i in range(10):
        picture(tmp_path / "a" / f"{i}.png", (i, 0, 0))
        picture(tmp_path / "b" / f"{i}.png", (0, i, 0))
    before = datasets.load(f"folder:{tmp_path}")
    picture(tmp_path / "b" / "more.png", (9, 9, 9))
    both = [datasets.load(f"folder:{tmp_path}", s) for s in ("train", "test")]
    assert sum(map(len, both)) == 21
    assert both[0].fingerprint != before.fingerprint


def test_folders_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no folder"):
        datasets.load(f"folder:{tmp_path}/nothing")
    with pytest.raises(ValueError, match="has no images"):
        datasets.load(f"folder:{tmp_path}")
    (tmp_path / "x.png").write_bytes(b"no")
    (tmp_path / "y.png").write_bytes(b"no")
    with pytest.raises(ValueError, match="none of the"):
        datasets.load(f"folder:{tmp_path}")


def test_links_out_of_a_folder_are_left_alone(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    picture(outside / "secret.png", (1, 2, 3))
    for i in range(5):
        picture(inside / f"{i}.png", (i, 0, 0))
    (inside / "link.png").symlink_to(outside / "secret.png")
    both = [datasets.load(f"folder:{inside}", s) for s in ("train", "test")]
    assert sum(map(len, both)) == 5


def test_an_image_bomb_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contrastive_core.data import image_folder

    monkeypatch.setattr(image_folder, "MOST_PIXELS", 1000)
    for i in range(6):
        picture(tmp_path / f"{i}.png", (i, 0, 0))
    picture(tmp_path / "bomb.png", (0, 0, 0), (200, 200))
    both = [datasets.load(f"folder:{tmp_path}", s) for s in ("train", "test")]
    assert sum(map(len, both)) == 6
    reasons = [why for s in both for _, why in s.skipped]
    assert "DecompressionBomb" in reasons[0]


def test_a_damaged_cache_is_made_again(tmp_path: Path) -> None:
    first = datasets.load("digits")
    path = data_home() / "data" / "digits-train-v1" / "images.npy"
    path.write_bytes(path.read_bytes()[:100])
    assert datasets.load("digits").fingerprint == first.fingerprint


def test_cifar10_in_its_own_format(tmp_path: Path) -> None:
    """The files that torchvision downloads, made small; their check sums are not ours to fake."""
    import torchvision.datasets as tv

    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        batch = {"data": rng.integers(0, 256, (4, 3072), dtype=np.uint8), "labels": [0, 1, 2, 3]}
        (folder / name).write_bytes(pickle.dumps(batch))
    meta = {"label_names": [f"c{i}" for i in range(10)]}
    (folder / "batches.meta").write_bytes(pickle.dumps(meta))
    with pytest.MonkeyPatch.context() as m:
        m.setattr(tv.CIFAR10, "_check_integrity", lambda self: True)
        m.setattr(tv.cifar, "check_integrity", lambda *a, **k: True)
        found = datasets.load("cifar10", "train", str(tmp_path))
    assert found.images.shape == (20, 3, 32, 32)
    assert found.labels.tolist() == [0, 1, 2, 3] * 5
    first = pickle.loads((folder / "data_batch_1").read_bytes())["data"][0]
    assert np.array_equal(found.images[0].reshape(-1), first)


def test_torchvision_files_that_are_damaged_are_named(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    with pytest.raises(Damaged, match="cifar10 in"):
        datasets.load("cifar10", "train", str(tmp_path))


def test_a_folder_without_a_path_is_not_the_present_one() -> None:
    with pytest.raises(ValueError, match="needs the path"):
        datasets.load("folder:")
