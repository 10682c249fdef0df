"""Decisions applied: the label of every image, a corrected folder and a script; `train` reads what was saved."""

import subprocess
from pathlib import Path

import pytest
from PIL import Image

from contrastive_core.base.errors import BadSetting
from contrastive_core.data import datasets, overrides
from contrastive_core.samples import annotations, corrected_folder
from contrastive_core.samples.sample_table import decisions_path


def made(root: Path) -> tuple[str, dict[str, annotations.Marks]]:
    """A folder whose classes share file names, with a decision of each kind on a training image, and one on a test
    image."""
    for place in ("train/cat", "train/dog", "test/cat", "test/dog"):
        (root / place).mkdir(parents=True)
        for number in range(3):
            color = (40 * number, 200 * ("dog" in place), 100 * ("test" in place))
            Image.new("RGB", (8, 8), color).save(root / place / f"{number}.png")
    config = {"dataset": f"folder:{root}"}
    train, test = (decisions_path(config, split) for split in ("train", "test"))
    annotations.add(train, "cat/0.png", "keep", given="cat")
    annotations.add(train, "cat/1.png", "relabel", "dog", given="cat")
    annotations.add(train, "dog/2.png", "drop", given="dog")
    annotations.add(test, "cat/0.png", "drop", given="cat")
    return config["dataset"], annotations.by_split(config)


def test_train_reads_the_saved_labels_as_they_were_meant(tmp_path: Path) -> None:
    dataset, by_split = made(tmp_path / "photos")
    for every in (None, annotations.every_label({"dataset": dataset})):
        file = tmp_path / "labels.csv"
        file.write_text(annotations.labels_csv(by_split, every))
        assert overrides.read_ids(str(file)) == ["dog/2.png"]  # what was kept stays, and the test image is no matter
        assert overrides.read_labels(str(file)) == {"cat/1.png": "dog"}
        got = overrides.curated(datasets.load(dataset), str(file), str(file))
        assert dict(zip(got.ids, got.labels.tolist(), strict=True)) == {
            "cat/0.png": 0,
            "cat/1.png": 1,
            "cat/2.png": 0,
            "dog/0.png": 1,
            "dog/1.png": 1,
        }
    assert len(file.read_text().splitlines()) == 1 + 12  # every image
    assert "dog/0.png,train,dog,,,,,dog" in file.read_text()


def test_a_corrected_folder_has_each_image_in_its_class_and_its_split(tmp_path: Path) -> None:
    dataset, by_split = made(tmp_path / "photos")
    assert corrected_folder.write_folder(dataset, by_split, tmp_path / "new") == 10
    train, test = (datasets.load(f"folder:{tmp_path / 'new'}", split) for split in ("train", "test"))
    assert train.ids == ["cat/0.png", "cat/2.png", "dog/0.png", "dog/1.png", "dog/cat-1.png"]
    assert len(test) == 5
    with pytest.raises(BadSetting, match="already exists"):
        corrected_folder.write_folder(dataset, by_split, tmp_path / "new")
    assert len(list((tmp_path / "photos").rglob("*.png"))) == 12  # untouched
    corrected_folder.write_folder(dataset, by_split, tmp_path / "moved", should_move=True)
    left = sorted(str(path.relative_to(tmp_path / "photos")) for path in (tmp_path / "photos").rglob("*.png"))
    assert left == ["test/cat/0.png", "train/dog/2.png"]  # what was dropped


def test_the_script_moves_only_what_was_decided(tmp_path: Path) -> None:
    dataset, by_split = made(tmp_path / "it's photos")
    subprocess.run(["sh", "-c", corrected_folder.script(dataset, by_split)], check=True)
    assert datasets.load(dataset).ids == ["cat/0.png", "cat/2.png", "dog/0.png", "dog/1.png", "dog/cat-1.png"]
    dropped = tmp_path / "it's photos-dropped"
    assert sorted(str(path.relative_to(dropped)) for path in dropped.rglob("*.png")) == [
        "test/cat/0.png",
        "train/dog/2.png",
    ]
    with pytest.raises(BadSetting, match="a corrected folder needs a folder of images"):
        corrected_folder.script("digits", {})
    wrong = {"train": {"cat/0.png": annotations.Mark(what="relabel", label="../x")}}
    with pytest.raises(BadSetting, match="which is not a class of the folder"):
        corrected_folder.script(dataset, wrong)
