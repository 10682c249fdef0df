"""Folders of images: which of their folders is taken for which split, what Train shows before a training, and how long
a listing is kept."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from contrastive_core.cli.main import main
from contrastive_core.data import datasets, image_listings
from contrastive_core.data.dataset import ImageForm
from contrastive_core.data.folder_selection import SIDE, changed, count_images, folder_preview, subfolders, values_of
from contrastive_core.engine import answers
from contrastive_lab.train.folder import classes, summary, wrong_folder


def save(*paths: Path) -> None:
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (9 * number % 256, 0, 0)).save(path)


def save_classes(folder: Path, n: int = 5) -> None:
    save(*(folder / c / f"{i}.png" for c in ("cat", "dog") for i in range(n)))


def both(folder: Path) -> list[datasets.Dataset]:
    return [datasets.load(f"folder:{folder}", split) for split in ("train", "test")]


@pytest.mark.parametrize(
    ("parts", "sizes", "said"),
    [
        ({"train": 5, "val": 2}, (10, 4), "The test images come from val/, because there is no test/."),
        ({"train": 5, "validation": 2}, (10, 4), "The test images come from validation/, because there is no test/."),
        ({"train": 5, "test": 3, "val": 2}, (10, 6), "val/ is not used: images come only from train/ and test/."),
        (
            {"train": 5, "val": 3, "valid": 2},
            (10, 6),
            "The test images come from val/, because there is no test/. valid/ is not used: images come only from "
            "train/ and val/.",
        ),
        (
            {"train": 5, "val": 0},
            (8, 2),
            "All images come from train/. One fifth is held out because there is no test/.",
        ),
        ({"a": 5, "train": 5, "val": 5}, (24, 6), ""),  # classes that have such names stay classes
        ({"test": 5, "val": 5}, (16, 4), ""),
    ],
)
def test_the_folder_of_each_split_is_named(
    tmp_path: Path, parts: dict[str, int], sizes: tuple[int, int], said: str
) -> None:
    place = tmp_path / "set"
    for name, n in parts.items():
        (place / name).mkdir(parents=True)
        save_classes(place / name, n)
    (place / "annotations").mkdir()
    (place / "annotations" / "all.xml").write_text("beside them, without images")
    train, test = both(place)
    assert (len(train), len(test)) == sizes
    assert train.classes == test.classes == (("cat", "dog") if said else tuple(parts))
    assert train.left_out == test.left_out == said
    assert " ".join(folder_preview(str(place)).remarks) == said


def test_a_list_takes_its_validation_lines_for_the_test(tmp_path: Path) -> None:
    save(*(tmp_path / f"{i}.png" for i in range(6)))
    lines = [f"{i}.png,{'train' if i < 4 else 'Val'}" for i in range(6)]
    (tmp_path / "list.csv").write_text("\n".join(["file,split", *lines]))
    train, test = (datasets.load(f"csv:{tmp_path / 'list.csv'}", s) for s in ("train", "test"))
    assert (train.ids, test.ids) == ([f"{i}.png" for i in range(4)], ["4.png", "5.png"])
    assert train.left_out == "The test images come from the split val, because no split is named test."
    (tmp_path / "list.csv").write_text("\n".join(["file,split", *lines[:5], "5.png,test"]))
    train, test = (datasets.load(f"csv:{tmp_path / 'list.csv'}", s) for s in ("train", "test"))
    assert test.ids == ["5.png"]
    assert train.skipped == [("4.png", "its split is 'val', neither train nor test")]


def test_files_of_other_endings_are_counted(tmp_path: Path) -> None:
    place = tmp_path / "set"
    save_classes(place)
    for name in (
        "1.heic 2.HEIC deeper/3.heic 4.tga 5.npy 6 7.avif 8.jp2 README notes.txt about.json .DS_Store .hidden.heic "
        "Thumbs.db labels.csv"
    ).split():
        (place / "cat" / name).parent.mkdir(exist_ok=True)
        (place / "cat" / name).write_bytes(b"some")
    (place / "only").mkdir()
    (place / "only" / "1.heic").write_bytes(b"some")
    said = image_listings.remarks(*image_listings.listings_of_folder(str(place)).values())
    assert len(said) == 1
    assert said[0].startswith("Files of unsupported types are skipped: .heic (4), ")
    assert said[0].endswith(", other extensions (3).")
    train, test = both(place)
    assert folder_preview(str(place)).remarks == (train.left_out,) == (test.left_out,) == tuple(said)
    assert train.skipped == []  # nothing that a cache's key holds
    assert len(train) + len(test) == 10


def test_a_folder_of_nothing_else_says_so(tmp_path: Path) -> None:
    (tmp_path / "1.heic").write_bytes(b"some")
    with pytest.raises(ValueError, match=r"; Files of unsupported types are skipped: \.heic \(1\)$"):
        datasets.load(f"folder:{tmp_path}")


def pictures(folder: Path, n: int, color: str = "red") -> None:
    folder.mkdir(parents=True)
    for i in range(n):
        Image.new("RGB", (20, 12), color).save(folder / f"{i:02}.png")


def test_classes_are_counted_as_training_splits_them_and_each_is_shown(tmp_path: Path) -> None:
    pictures(tmp_path / "many", 30)
    pictures(tmp_path / "few", 5, "blue")
    made = folder_preview(str(tmp_path))
    assert made.classes == ("few", "many")
    assert made.counts == ((4, 1), (24, 6))
    for part, split in enumerate(("train", "test")):
        decoded = datasets.load(f"folder:{tmp_path}", split)
        assert len(decoded) == sum(count[part] for count in made.counts)
    made = folder_preview(str(tmp_path), limit=6)
    assert made.images.shape == (6, 3, SIDE, SIDE)
    assert made.labels == (0, 0, 0, 1, 1, 1)
    assert made.ids[0].startswith("few/")
    assert made.images[0, 2].min() == made.images[5, 0].min() == 255  # blue, then red


@pytest.mark.parametrize(("n", "limit"), [(3, 10), (9, 2)])
def test_what_cannot_be_read_is_named_whether_it_would_be_shown_or_not(tmp_path: Path, n: int, limit: int) -> None:
    pictures(tmp_path / "a", n)
    (tmp_path / "a" / "notes.png").write_bytes(b"no picture")
    made = folder_preview(str(tmp_path), limit=limit)
    assert len(made.images) <= min(n, limit)
    assert [name for name, _ in made.left_out] == ["a/notes.png"]
    assert sum(map(sum, made.counts)) == n  # a training gets no more


def test_the_same_picture_twice_is_counted_by_what_it_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, place in enumerate(("train/a/0", "train/a/1", "train/b/0", "train/b/2", "test/a/0", "test/b/0")):
        file = tmp_path / f"{place}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        color = (0, 0, 0) if place.endswith("0") else (0, 0, 50 * number)
        Image.new("RGB", (8, 8), color).save(file, compress_level=number)  # other bytes, equal pixels
    Image.new("RGB", (8, 8)).save(tmp_path / "train" / "a" / "9.png")
    found = folder_preview(str(tmp_path))
    assert found.same_counts == {"copy": 1, "two labels": 1, "leak": 2}
    assert ("leak", "train: a/0.png", "test: b/0.png") in found.same
    monkeypatch.setattr("contrastive_core.data.folder_selection.SECONDS", -1.0)
    assert (folder_preview(str(tmp_path), limit=2).compared, found.compared) == (2, 7)
    for file in tmp_path.rglob("*.png"):
        file.write_bytes(b"no picture")
    with pytest.raises(ValueError, match="none of the 7 images in "):
        folder_preview(str(tmp_path))


def test_a_damaged_training_file_leaves_the_test_file_of_its_name_counted(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for label in "ab":
            pictures(tmp_path / split / label, 4)
    (tmp_path / "train" / "a" / "01.png").write_bytes(b"no picture")
    made = folder_preview(str(tmp_path))
    assert made.counts == ((3, 4), (4, 4))
    assert [name for name, _ in made.left_out] == ["a/01.png"]


def test_the_card_says_all_of_it_in_a_line(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        pictures(tmp_path / name, 5)
    Image.new("RGB", (40, 40)).save(tmp_path / "b" / "00.png")
    (tmp_path / "b" / "notes.png").write_bytes(b"no picture")
    meta = answers.make("folder", values_of(str(tmp_path))).meta
    train, test = (sum(count[part] for count in meta["counts"]) for part in (0, 1))
    assert summary(meta) == (
        f"15 images · 3 classes · 20×12 to 40×40 · {train} train, {test} test · 1 left out: b/notes.png"
    )
    assert classes(meta) == "a 4 + 1, b 4 + 1, c 4 + 1"
    pictures(tmp_path / "a" / "flat", 10)
    meta = answers.make("folder", values_of(str(tmp_path / "a" / "flat"))).meta
    assert summary(meta) == "10 images · no classes · 20×12 · 8 train, 2 test"
    assert "Use a method without labels" in classes(meta)


def test_the_card_counts_captions_and_says_what_is_wrong_with_them(tmp_path: Path) -> None:
    for name in ("train", "test"):
        pictures(tmp_path / name, 5)
    told = []
    for lines in (["file,caption", "train/00.png,a", "train/00.png,b", "train/01.png,c", "test/00.png,"], ["file"]):
        (tmp_path / "captions.csv").write_text("\n".join(lines))
        meta = answers.make("folder", values_of(str(tmp_path))).meta
        told.append((summary(meta), " ".join(meta["remarks"]), wrong_folder(str(tmp_path), "CLIP"), classes(meta)))
    assert told[0][0].endswith("5 train, 5 test · 3 captions for 2 images")
    assert "Training images without a caption: 3." in told[0][1]
    assert "Empty captions in captions.csv are left out: 1" in told[0][1]
    assert told[0][2] == ""
    assert ["use CLIP" in of_classes for *_, of_classes in told] == [True, False]
    assert "needs a column 'caption'" in told[1][2]
    assert told[1][2] in told[1][1]
    (tmp_path / "captions.csv").unlink()
    answers.make("folder", values_of(str(tmp_path)))
    assert "CLIP needs captions" in wrong_folder(str(tmp_path), "CLIP")


def test_of_many_classes_some_are_named_in_one_sentence() -> None:
    for n, more in ((12, ""), (13, " and 1 more class"), (20, " and 8 more classes")):
        said = classes({"classes": [f"c{i}" for i in range(n)], "counts": n * [(4, 1)]})
        assert said == ", ".join(f"c{i} 4 + 1" for i in range(12)) + more


def test_the_sizes_are_those_of_all_pictures_not_of_the_shown(tmp_path: Path) -> None:
    pictures(tmp_path / "a", 20)
    for number, size in ((7, (8, 8)), (13, (90, 70))):
        Image.new("RGB", size).save(tmp_path / "a" / f"{number:02}.png")
    assert folder_preview(str(tmp_path), limit=2).sizes == ((8, 8), (90, 70))


def test_a_new_file_is_a_change(tmp_path: Path) -> None:
    pictures(tmp_path / "a", 1)
    before = changed(str(tmp_path))
    Image.new("RGB", (4, 4)).save(tmp_path / "a" / "new.png")
    assert changed(str(tmp_path)) != before
    assert changed("/no/such\0folder") == []


def test_a_browser_counts_the_images_of_each_subfolder_within_a_limit(tmp_path: Path) -> None:
    for name in ("Pets/train/cat/1.png", "Pets/train/cat/2.JPG", "Pets/notes.txt", "empty/.hidden/1.png", ".no/1.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "Pets")
    assert subfolders(tmp_path) == {tmp_path / "empty": (0, True), tmp_path / "Pets": (2, True)}
    assert count_images(tmp_path / "Pets" / "train" / "cat", 1) == (1, False)
    assert count_images(tmp_path / "nothing") == (0, True)
    with pytest.raises(OSError, match="nothing"):
        subfolders(tmp_path / "nothing")


FORM = ImageForm(8)


def age(folder: Path) -> None:
    """As if nothing had been written there for an hour."""
    for place, _, _ in os.walk(folder):
        os.utime(place, (time.time() - 3600,) * 2)


def save_gray(path: Path, value: int = 9) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes below train/ and test/, and a list of them beside; a look counts for long."""
    for split in ("train", "test"):
        for c in "ab":
            for i in range(4):
                save_gray(tmp_path / "set" / split / c / f"{i}.png", 20 * i)
    lines = [f"{s}/a/{i}.png,{s}" for s in ("train", "test") for i in range(4)]
    (tmp_path / "set" / "list.csv").write_text("\n".join(["file,split", *lines]))
    os.utime(tmp_path / "set" / "list.csv", (time.time() - 3600,) * 2)
    age(tmp_path / "set")
    monkeypatch.setattr(datasets, "TIMES", 1e9)
    return tmp_path / "set"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each look at the files of a folder or a list."""
    made: list[str] = []
    for function in ("listings_of_folder", "listings_of_list"):
        real = getattr(image_listings, function)

        def listings(path: str, real=real) -> dict[str, image_listings.Listing]:
            made.append(path)
            return real(path)

        monkeypatch.setattr(image_listings, function, listings)
    return made


@pytest.mark.parametrize("kind", ["folder:{}", "csv:{}/list.csv"])
def test_a_page_lists_no_file_again_and_a_training_once(folder: Path, looks: list[str], kind: str) -> None:
    name = kind.format(folder)
    assert not datasets.is_made(name, "train", FORM)
    first = datasets.load(name, form=FORM)
    datasets.load(name, "test", form=FORM)
    age(folder)
    datasets.is_made(name, "train", FORM)
    looks.clear()
    for split in ("train", "test", "train"):
        assert datasets.is_made(name, split, FORM)
        again = datasets.load(name, split, form=FORM, afresh=False)
        assert again.form == FORM
        assert len(again) == (8 if name.startswith("folder") else 4)
    assert looks == []
    save_gray(folder / "train" / "a" / "1.png", 200)  # written over: its folder is as it was
    age(folder)
    assert datasets.load(name, form=FORM).fingerprint != first.fingerprint
    assert len(looks) == 1
    options = ["--epochs", "1", "--device", "cpu", "--set", "batch_size=4", "--set", "sample=4"]
    assert main(["train", "--dataset", name, "--run", "once", *options]) == 0
    assert len(looks) == 2


def test_a_file_that_is_added_is_seen_at_once(folder: Path) -> None:
    name, before = f"folder:{folder}", changed(str(folder))
    for change in ("train/a/new.png", "train/c/new.png", "val/a/new.png"):
        key = datasets.made_path(name, "train", FORM)
        assert datasets.known(name, "train", FORM), change
        save_gray(folder / change)
        assert datasets.known(name, "train", FORM) is None, change
        assert changed(str(folder)) != before
        age(folder)
        assert (datasets.made_path(name, "train", FORM) != key) is change.startswith("train"), change


def test_a_file_that_is_taken_away_and_a_list_that_is_written_are_seen(folder: Path) -> None:
    (folder / "test" / "b" / "1.png").unlink()
    names = (f"folder:{folder}", f"csv:{folder}/list.csv")
    age(folder)
    for name in names:
        datasets.is_made(name, "test", FORM)
        assert datasets.known(name, "test", FORM)
    (folder / "test" / "a" / "1.png").unlink()
    assert all(datasets.known(name, "test", FORM) is None for name in names)
    age(folder)
    datasets.is_made(names[1], "test", FORM)
    (folder / "list.csv").write_text("file,split\ntrain/a/1.png,train\ntest/a/2.png,test")
    assert datasets.known(names[1], "test", FORM) is None


def test_what_was_just_written_or_is_long_ago_is_looked_at_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"folder:{folder}"
    save_gray(folder / "train" / "a" / "new.png")
    datasets.is_made(name, "train", FORM)
    assert datasets.known(name, "train", FORM) is None  # within a tick it may change again
    age(folder)
    monkeypatch.setattr(datasets, "TIMES", 0)
    datasets.is_made(name, "train", FORM)
    assert datasets.known(name, "train", FORM) is None
