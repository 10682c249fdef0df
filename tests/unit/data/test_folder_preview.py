"""What a folder of images holds, as Train shows it before a training."""

from pathlib import Path

import pytest
from PIL import Image

from contrastive_core.data import datasets
from contrastive_core.data.folder_selection import SIDE, changed, count_images, folder_preview, subfolders, values_of
from contrastive_core.engine import answers
from contrastive_lab.train.folder import classes, summary, wrong_folder


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


def test_a_folder_without_images_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name, said in (("empty", "has no images for train"), ("nothing", "there is no folder")):
        with pytest.raises(ValueError, match=said):
            folder_preview(str(tmp_path / name))


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
