"""A vector file may come from anybody: which pictures it may make the app open."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from contrastive_core.spaces.attached_images import GRAY, SIDE, Attached, pictures_of
from contrastive_core.spaces.embedding_set import EmbeddingSet


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a vector file and a picture, in a folder with a picture that must be one of its
    business."""
    for file, shade in (("mine/a.png", 10), ("mine/deep/b.png", 20), ("secret.png", 200)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (shade,) * 3).save(tmp_path / file)
    return tmp_path


def attached(home: Path, *names: str, folder: Path | None = None) -> Attached:
    rows = EmbeddingSet(np.eye(len(names), 2, dtype=np.float32), columns={"image": np.array(names)})
    return pictures_of(home / "mine" / "v.csv", rows, folder)


def shades(found: Attached) -> list[int]:
    assert found.images is not None
    assert found.images.shape[1:] == (3, SIDE, SIDE)
    return [int(image[0, 0, 0]) for image in found.images]


def test_names_below_the_files_own_folder_are_followed(home: Path) -> None:
    here = str(home / "mine" / "a.png")
    found = attached(home, "a.png", "deep/b.png", "deep/../a.png", here, "", "gone.png")
    assert shades(found) == [10, 20, 10, 10, GRAY, GRAY]
    assert found.note.startswith("1 of 5 images were not opened, for example gone.png: they do not exist, are links")
    assert attached(home, "a.png").note == ""


def test_pictures_of_other_rows_are_not_decoded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "mine" / "v.parquet"
    pq.write_table(pa.table({"image": [b"x"] * 3}), path)
    monkeypatch.setattr("contrastive_core.spaces.attached_images._thumbnail", pytest.fail)
    assert pictures_of(path, EmbeddingSet(np.eye(2, dtype=np.float32))).images is None


@pytest.mark.parametrize("how", ["dots", "absolute", "file link", "folder link"])
def test_a_name_that_leads_out_is_refused_with_a_sentence(home: Path, how: str) -> None:
    (home / "mine" / "link.png").symlink_to(home / "secret.png")
    (home / "mine" / "out").symlink_to(home)
    name = {
        "dots": "../secret.png",
        "absolute": str(home / "secret.png"),
        "file link": "link.png",
        "folder link": "out/secret.png",
    }[how]
    found = attached(home, "a.png", name)
    assert shades(found) == [10, GRAY]
    assert found.note.startswith(f"1 of 2 images were not opened, for example {name[:50]}")
    alone = attached(home, name)
    assert alone.images is None
    assert alone.note.startswith("1 of 1 images")


def test_a_folder_that_a_person_names_is_where_names_start(home: Path) -> None:
    found = attached(home, "secret.png", str(home / "secret.png"), "a.png", folder=home)
    assert shades(found) == [200, 200, 10]
    assert found.note == ""
    deep = attached(home, "b.png", "../../secret.png", folder=home / "mine" / "deep")
    assert shades(deep) == [20, GRAY]
    assert "../../secret.png" in deep.note
    with pytest.raises(ValueError, match="no folder"):
        attached(home, "a.png", folder=home / "gone")


def test_a_folder_beside_with_a_longer_name_is_outside(home: Path) -> None:
    (home / "mine2").mkdir()
    Image.new("RGB", (8, 8)).save(home / "mine2" / "c.png")
    assert attached(home, "../mine2/c.png").images is None


def test_names_that_are_no_files_do_no_harm(home: Path) -> None:
    """A pipe, which would never end; a folder; links in a circle; names that no system has."""
    os.mkfifo(home / "mine" / "pipe.png")
    (home / "mine" / "round.png").symlink_to(home / "mine" / "round.png")
    odd = ("pipe.png", "deep", "round.png", "a\0b", "x" * 5000, "~/a.png", "file:///etc/passwd")
    assert shades(attached(home, "a.png", *odd)) == [10] + [GRAY] * len(odd)


def test_only_picture_formats_are_tried(home: Path) -> None:
    """PostScript would be handed to another program."""
    Image.new("RGB", (8, 8)).save(home / "mine" / "a.eps")
    assert attached(home, "a.eps").images is None
