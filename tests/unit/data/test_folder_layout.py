"""Which folder of a folder is taken for which split, and which files are left out for their ending:
both are said."""

from pathlib import Path

import pytest
from PIL import Image

from contrastive_core.data import datasets, image_listings
from contrastive_core.data.folder_selection import folder_preview, values_of
from contrastive_core.engine import answers


def save(*paths: Path) -> None:
    for number, path in enumerate(paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (9 * number % 256, 0, 0)).save(path)


def save_classes(folder: Path, n: int = 5) -> None:
    save(*(folder / c / f"{i}.png" for c in ("cat", "dog") for i in range(n)))


def both(folder: Path) -> list[datasets.Dataset]:
    return [datasets.load(f"folder:{folder}", split) for split in ("train", "test")]


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_a_validation_part_stands_in_for_the_test(tmp_path: Path, name: str) -> None:
    save_classes(tmp_path / "train")
    save_classes(tmp_path / name, 2)
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "all.xml").write_text("beside them, without images")
    train, test = both(tmp_path)
    assert train.classes == test.classes == ("cat", "dog")
    assert (len(train), len(test)) == (10, 4)
    assert train.ids[0] == "cat/0.png"
    sentence = f"The test images come from {name}/, because there is no test/."
    assert train.left_out == test.left_out == sentence
    assert folder_preview(str(tmp_path)).remarks == (sentence,)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("train test val", "val/ is not used: images come only from train/ and test/."),
        ("train val valid", "valid/ is not used: images come only from train/ and val/."),
    ],
)
def test_a_third_part_is_left_out_with_a_sentence(tmp_path: Path, parts: str, said: str) -> None:
    for name, n in zip(parts.split(), (5, 3, 2), strict=True):
        save_classes(tmp_path / name, n)
    train, test = both(tmp_path)
    assert (len(train), len(test)) == (10, 6)
    assert train.left_out.endswith(said)


def test_a_lone_train_is_the_folder(tmp_path: Path) -> None:
    save_classes(tmp_path / "train")
    (tmp_path / "val").mkdir()  # without an image
    train, test = both(tmp_path)
    assert train.classes == ("cat", "dog")
    assert (len(train), len(test)) == (8, 2)
    assert train.left_out.startswith("All images come from train/")


@pytest.mark.parametrize("names", [("a", "train", "val"), ("cat", "dog", "val"), ("test", "val")])
def test_classes_that_have_such_names_stay_classes(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        save(*(tmp_path / name / f"{i}.png" for i in range(5)))
    train, _ = both(tmp_path)
    assert train.classes == names
    assert train.left_out == ""


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
    save_classes(tmp_path)
    for name in (
        "1.heic 2.HEIC deeper/3.heic 4.tga 5.npy 6 7.avif 8.jp2 README notes.txt about.json .DS_Store .hidden.heic "
        "Thumbs.db labels.csv"
    ).split():
        (tmp_path / "cat" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "cat" / name).write_bytes(b"some")
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "1.heic").write_bytes(b"some")
    said = image_listings.remarks(*image_listings.listings_of_folder(str(tmp_path)).values())
    assert len(said) == 1
    assert said[0].startswith("Files of unsupported types are skipped: .heic (4), ")
    assert said[0].endswith(", other extensions (3).")
    train, test = both(tmp_path)
    assert said[0] in train.left_out
    assert train.skipped == []  # nothing that a cache's key holds
    assert len(train) + len(test) == 10


def test_each_split_says_of_the_endings_what_the_card_does(tmp_path: Path) -> None:
    save_classes(tmp_path / "train")
    save_classes(tmp_path / "val", 2)
    files = "train/cat/1.heic train/cat/2.avif val/cat/3.avif train/cat/4.npy train/cat/5.npy val/cat/6.npy"
    for name in files.split():
        (tmp_path / name).write_bytes(b"some")
    card = answers.make("folder", values_of(str(tmp_path))).meta["remarks"]
    assert card[-1] == "Files of unsupported types are skipped: .npy (3), .avif (2), .heic (1)."
    assert [one.left_out for one in both(tmp_path)] == 2 * [" ".join(card)]


def test_a_folder_of_nothing_else_says_so(tmp_path: Path) -> None:
    (tmp_path / "1.heic").write_bytes(b"some")
    with pytest.raises(ValueError, match=r"; Files of unsupported types are skipped: \.heic \(1\)$"):
        datasets.load(f"folder:{tmp_path}")
