"""Which folder of a folder is taken for which split, and which files are left out for their ending:
both are said."""

from pathlib import Path

import pytest
from PIL import Image

from contrastive_core.data import datasets, image_listings
from contrastive_core.data.folder_selection import folder_preview


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
