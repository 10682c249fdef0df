"""What a look at a folder found is kept while the folder is as it was, and no longer."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from contrastive_core.cli.main import main
from contrastive_core.data import datasets, image_listings
from contrastive_core.data.dataset import ImageForm
from contrastive_core.data.folder_selection import changed

FORM = ImageForm(8)


def age(folder: Path) -> None:
    """As if nothing had been written there for an hour."""
    for place, _, _ in os.walk(folder):
        os.utime(place, (time.time() - 3600,) * 2)


def save(path: Path, value: int = 9) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes below train/ and test/, and a list of them beside; a look counts for long."""
    for split in ("train", "test"):
        for c in "ab":
            for i in range(4):
                save(tmp_path / "set" / split / c / f"{i}.png", 20 * i)
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
    save(folder / "train" / "a" / "1.png", 200)  # written over: its folder is as it was
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
        save(folder / change)
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
    save(folder / "train" / "a" / "new.png")
    datasets.is_made(name, "train", FORM)
    assert datasets.known(name, "train", FORM) is None  # within a tick it may change again
    age(folder)
    monkeypatch.setattr(datasets, "TIMES", 0)
    datasets.is_made(name, "train", FORM)
    assert datasets.known(name, "train", FORM) is None
