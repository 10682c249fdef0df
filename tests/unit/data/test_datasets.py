"""Data sets: digits and shapes, folders in every form, torchvision's files in their formats."""

import os
import pickle
import socket
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from contrastive_core.base.errors import Damaged, NotDownloaded, UnknownName
from contrastive_core.base.storage import data_home
from contrastive_core.data import datasets, image_listings, named_sets


def test_digits_are_split_by_class_and_stay_the_same() -> None:
    train, test = (datasets.load("digits", s) for s in ("train", "test"))
    assert train.images.shape == (1437, 1, 8, 8)
    assert len(test) == 360
    assert not set(train.ids) & set(test.ids)
    assert np.abs(np.bincount(test.labels) - 36).max() <= 1
    assert datasets.load("digits", "train").fingerprint == train.fingerprint
    assert train.fingerprint != test.fingerprint


def test_shapes_are_made_alike_from_a_seed() -> None:
    a, labels, factors = named_sets.make_shapes(64, seed=3)
    b, _, _ = named_sets.make_shapes(64, seed=3)
    assert np.array_equal(a, b)
    assert a.shape == (64, 3, 32, 32)
    assert np.bincount(labels).tolist() == [8] * 8
    assert set(factors) >= {"hue", "background_hue", "x", "y", "radius", "angle", "texture"}
    assert not np.array_equal(a, named_sets.make_shapes(64, seed=4)[0])
    spread = [np.corrcoef(factors["hue"], labels == c)[0, 1] for c in range(8)]
    assert np.abs(spread).max() < 0.5  # color does not tell the class


def test_names() -> None:
    for asked, said in (
        (("imagenet",), "known: digits, shapes, digits_mislabeled, cifar10"),
        (("cifar10",), "170 MB"),
        (("digits", "validation"), "split must be"),
    ):
        with pytest.raises((UnknownName, NotDownloaded, ValueError), match=said):
            datasets.load(*asked)


def picture(path: Path, color: tuple[int, int, int], size: tuple[int, int] = (20, 16)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).save(path)


def splits_of(folder: Path) -> list[datasets.Dataset]:
    return [datasets.load(f"folder:{folder}", split) for split in ("train", "test")]


def test_a_folder_per_class_is_read_again_after_a_change(tmp_path: Path) -> None:
    for i in range(10):
        picture(tmp_path / "cats" / f"{i}.png", (i, 0, 0))
        picture(tmp_path / "dogs" / f"{i}.png", (0, i, 0))
    (tmp_path / "dogs" / "broken.jpg").write_bytes(b"\xff\xd8 not an image")
    (tmp_path / "dogs" / "notes.txt").write_text("no image")
    train, test = splits_of(tmp_path)
    assert train.classes == ("cats", "dogs")
    assert len(train) + len(test) == 20
    assert set(train.ids) | set(test.ids) == {f"{c}/{i}.png" for c in train.classes for i in range(10)}
    assert train.images.shape[1:] == (3, 16, 16)
    assert [name for name, _ in train.skipped + test.skipped] == ["dogs/broken.jpg"]
    picture(tmp_path / "dogs" / "more.png", (9, 9, 9))
    again = splits_of(tmp_path)
    assert sum(map(len, again)) == 21
    assert again[0].fingerprint != train.fingerprint


def test_a_flat_folder_has_no_labels_and_parts_are_taken_as_they_are(tmp_path: Path) -> None:
    for i in range(10):
        picture(tmp_path / "flat" / f"{i}.jpg", (20 * i, 0, 0))
    train = datasets.load(f"folder:{tmp_path / 'flat'}")
    assert (train.classes, set(train.labels)) == ((), {-1})
    for name in ("train/a", "train/b", "train/c", "test/b"):
        picture(tmp_path / "parts" / name / "1.png", (1, 2, 3))
    train, test = splits_of(tmp_path / "parts")
    assert train.classes == test.classes == ("a", "b", "c")  # one split lacks two of them
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 1, 2], [1])


def test_folders_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    picture(tmp_path / "outside.png", (1, 2, 3))
    for name in ("empty", "links", "bad"):
        (tmp_path / name).mkdir()
    for i in range(3):
        (tmp_path / "links" / f"{i}.png").symlink_to(tmp_path / "outside.png")
        (tmp_path / "bad" / f"{i}.png").write_bytes(b"no")
    for name, said in (
        ("folder:", "needs a path"),
        (f"folder:{tmp_path}/nothing", "there is no folder"),
        (f"folder:{tmp_path}/empty", "has no images"),
        (f"folder:{tmp_path}/links", r"3 links were left out .*CONTRASTIVE_LAB_FOLLOW_LINKS"),
        (f"folder:{tmp_path}/bad", "images are unreadable"),
    ):
        with pytest.raises(ValueError, match=said):
            datasets.load(name)


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder of two classes with links out of it, links inside it, one to nothing and one to
    itself."""
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    picture(outside / "far" / "secret.png", (1, 2, 3))
    for i in range(10):
        picture(inside / "a" / f"{i}.png", (i, 0, 0))
        picture(inside / "b" / f"{i}.png", (0, i, 0))
    (inside / "a" / "file.png").symlink_to(outside / "far" / "secret.png")
    (inside / "a" / "near.png").symlink_to(inside / "b" / "1.png")
    (inside / "a" / "deeper").symlink_to(outside / "far")
    (inside / "a" / "dead.png").symlink_to("nowhere")
    (inside / "a" / "round").symlink_to(inside / "a")
    (inside / "circle").symlink_to("circle")
    (inside / "a" / "circle.png").symlink_to("circle.png")
    (inside / "c").symlink_to(outside / "far")
    return inside


def both_splits(folder: Path) -> tuple[set[str], dict[str, str], tuple[str, ...]]:
    """Ids, what was left out with the reason, and the classes."""
    parts = splits_of(folder)
    skipped = {name: why for part in parts for name, why in part.skipped}
    return {i for part in parts for i in part.ids}, skipped, parts[0].classes


def test_links_in_a_folder_are_left_out_and_listed(linked: Path) -> None:
    ids, skipped, classes = both_splits(linked)
    assert ids == {f"{c}/{i}.png" for c in "ab" for i in range(10)}
    assert classes == ("a", "b")
    names = {"a/file.png", "a/near.png", "a/deeper", "a/dead.png", "a/round", "a/circle.png", "c"}
    assert set(skipped) == names
    assert all("CONTRASTIVE_LAB_FOLLOW_LINKS" in why for why in skipped.values())


def test_links_are_followed_where_a_person_says_so(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each folder once, so that a link back up ends."""
    monkeypatch.setenv("CONTRASTIVE_LAB_FOLLOW_LINKS", "1")
    ids, skipped, classes = both_splits(linked)
    assert ids > {"a/file.png", "a/near.png", "a/deeper/secret.png", "c/secret.png"}
    assert len(ids) == 24
    assert classes == ("a", "b", "c")
    assert skipped == dict.fromkeys(("a/dead.png", "a/circle.png"), "a link to nothing")


def test_only_pictures_of_listed_formats_and_ordinary_files_are_opened(tmp_path: Path) -> None:
    """PostScript under a picture's name would be handed to another program; a pipe never ends."""
    for i in range(10):
        picture(tmp_path / f"{i}.png", (i, 0, 0))
    Image.new("RGB", (8, 8)).save(tmp_path / "z.eps")
    (tmp_path / "z.eps").rename(tmp_path / "z.png")
    Image.new("1", (9000, 8000)).save(tmp_path / "bomb.png")  # a few kilobytes
    os.mkfifo(tmp_path / "pipe.png")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tmp_path)  # such an address may be no longer than 107 bytes
        server.bind("socket.png")
        os.chdir(here)
        ids, skipped, _ = both_splits(tmp_path)
    assert len(ids) == 10
    assert skipped.pop("z.png").startswith("not an image in one of the formats")
    assert "9,000 × 8,000 pixels; an image may have at most 64,000,000" in skipped.pop("bomb.png")
    assert skipped == {"pipe.png": "not a file", "socket.png": "not a file"}


def test_names_that_are_no_text_are_escaped(tmp_path: Path) -> None:
    for name in (b"caf\xe9", b"line\nbreak", b"\x1b[31mred", b"plain"):
        picture(tmp_path / "p.png", (1, 2, 3))
        os.rename(tmp_path / "p.png", os.fsencode(tmp_path) + b"/" + name + b".png")
    ids, _, _ = both_splits(tmp_path)
    names = {r"caf\udce9.png", r"line\nbreak.png", r"\x1b[31mred.png", "plain.png"}
    assert ids == names
    assert datasets.load(f"folder:{tmp_path}").ids == datasets.load(f"folder:{tmp_path}").ids


def test_files_are_listed_in_the_order_of_their_paths_parts(tmp_path: Path) -> None:
    names = "b/2.png b/a.png b/a/9.png b/a!/1.png b/a-b.png b/a/b/c.PNG b/..png b/.png b/x.txt b/png".split()
    names += ["a b/1.jpeg", "a/1.png"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1234")
    listing = image_listings.labeled(tmp_path)
    taken = [n for n in names if Path(n).suffix.lower() in image_listings.ENDINGS]
    assert [f.id for f in listing.files] == sorted(taken, key=lambda n: Path(n).parts)
    assert listing.classes == ("a", "a b", "b")
    assert [f.label for f in listing.files] == [0, 1, *[2] * (len(taken) - 2)]
    assert [f.path for f in listing.files] == [tmp_path / f.id for f in listing.files]
    about = (tmp_path / "a/1.png").stat()
    assert listing.files[0].stamp == f"4\0{about.st_mtime_ns}"


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
    with pytest.raises(Damaged, match="cifar10 in"):
        datasets.load("cifar10", "train", str(tmp_path))
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
