"""What a folder of images holds, as Train shows it before a training."""

from pathlib import Path

import pytest
from PIL import Image

from contrastive_core.data import datasets
from contrastive_core.data.folder_selection import SIDE, changed, folder_preview, pictures_in, subfolders, values_of
from contrastive_core.engine import answers
from contrastive_lab.train.folder import about_captions, classes, said_of_copies, summary, wrong_captions


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
    values = {"path": str(tmp_path), "changed": []}
    meta = answers.make("folder", values).meta
    assert meta["same_counts"] == {"copy": 1, "two labels": 1, "leak": 2}
    assert ("leak", "train: a/0.png", "test: b/0.png") in [tuple(one) for one in meta["same"]]
    assert said_of_copies(meta["same_counts"]).endswith("copies: 1 · with two labels: 1 · in both splits: 2")
    monkeypatch.setattr("contrastive_core.data.folder_selection.SECONDS", -1.0)
    assert (folder_preview(str(tmp_path), limit=2).compared, meta["compared"]) == (2, 7)
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


def test_a_folder_without_classes_says_what_follows(tmp_path: Path) -> None:
    pictures(tmp_path / "flat", 10)
    result = answers.make("folder", {"path": str(tmp_path / "flat"), "changed": []})
    assert result.meta["counts"] == ((8, 2),)
    assert summary(result.meta) == "10 images · no classes · 20×12 · 8 train, 2 test"
    assert "Use a method without labels" in classes(result.meta)


def test_the_card_says_all_of_it_in_a_line(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        pictures(tmp_path / name, 5)
    Image.new("RGB", (40, 40)).save(tmp_path / "b" / "00.png")
    (tmp_path / "b" / "notes.png").write_bytes(b"no picture")
    meta = answers.make("folder", {"path": str(tmp_path), "changed": []}).meta
    train, test = (sum(count[part] for count in meta["counts"]) for part in (0, 1))
    assert summary(meta) == (
        f"15 images · 3 classes · 20×12 to 40×40 · {train} train, {test} test · 1 left out: b/notes.png"
    )
    assert classes(meta) == "a 4 + 1, b 4 + 1, c 4 + 1"


def test_the_card_counts_captions_and_says_what_is_wrong_with_them(tmp_path: Path) -> None:
    for name in ("train", "test"):
        pictures(tmp_path / name, 5)
    told = []
    for lines in (["file,caption", "train/00.png,a", "train/00.png,b", "train/01.png,c", "test/00.png,"], ["file"]):
        (tmp_path / "captions.csv").write_text("\n".join(lines))
        meta = answers.make("folder", values_of(str(tmp_path))).meta
        told.append((summary(meta), about_captions(meta), wrong_captions(meta, "CLIP")))
    assert told[0][0].endswith("5 train, 5 test · 3 captions for 2 images")
    assert "3 training images have no caption" in told[0][1]
    assert "Empty captions in captions.csv are left out: 1" in told[0][1]
    assert told[0][2] == ""
    assert "use CLIP" in classes({**meta, "captions": [3, 2, 2]})
    assert "use CLIP" not in classes(meta)
    assert "needs a column 'caption'" in told[1][1] == told[1][2]
    (tmp_path / "captions.csv").unlink()
    meta = answers.make("folder", values_of(str(tmp_path))).meta
    assert "CLIP needs captions" in wrong_captions(meta, "CLIP")


def test_of_many_classes_some_are_named_in_one_sentence() -> None:
    for n, more in ((12, ""), (13, " and 1 more class"), (20, " and 8 more classes")):
        said = classes({"classes": [f"c{i}" for i in range(n)], "counts": n * [(4, 1)]})
        assert said == ", ".join(f"c{i} 4 + 1" for i in range(12)) + more


def test_the_sizes_are_those_of_all_pictures_not_of_the_shown(tmp_path: Path) -> None:
    pictures(tmp_path / "a", 20)
    for number, size in ((7, (8, 8)), (13, (90, 70))):
        Image.new("RGB", size).save(tmp_path / "a" / f"{number:02}.png")
    assert folder_preview(str(tmp_path), limit=2).sizes == ((8, 8), (90, 70))


@pytest.mark.parametrize("name", ["empty", "nothing"])
def test_a_folder_without_images_is_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"has no images for train|there is no folder"):
        folder_preview(str(tmp_path / name))


def test_a_new_file_is_a_change(tmp_path: Path) -> None:
    pictures(tmp_path / "a", 1)
    before = changed(str(tmp_path))
    Image.new("RGB", (4, 4)).save(tmp_path / "a" / "new.png")
    assert changed(str(tmp_path)) != before
    assert changed("/no/such\0folder") == []


# --- folders as a file dialog lists them ---------------------------------------------------------


def files(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


def test_each_folder_has_its_pictures(tmp_path: Path) -> None:
    files(tmp_path / "Pets" / "train" / "cat", "1.png", "2.JPG", "notes.txt")
    files(tmp_path / "Pets" / "test" / "cat", "3.jpeg")
    files(tmp_path / "empty")
    files(tmp_path / ".hidden", "1.png")
    files(tmp_path, "4.png")
    (tmp_path / "link").symlink_to(tmp_path / "Pets")
    listed = subfolders(tmp_path)
    assert [(s.name, s.pictures, s.is_exact) for s in listed] == [("empty", 0, True), ("Pets", 3, True)]
    assert pictures_in(tmp_path) == (4, True)


def test_a_huge_folder_is_not_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrastive_core.data.folder_selection.LOOKS", 10)
    files(tmp_path / "many", *(f"{i}.png" for i in range(30)))
    (one,) = subfolders(tmp_path)
    assert (one.pictures, one.is_exact) == (10, False)


def test_what_cannot_be_read_is_as_if_it_were_empty(tmp_path: Path) -> None:
    assert pictures_in(tmp_path / "nothing") == (0, True)
    with pytest.raises(OSError, match="nothing"):
        subfolders(tmp_path / "nothing")
