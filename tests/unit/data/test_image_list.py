"""Lists of images, `csv:PATH`: classes, splits, further columns, and what is left out of them."""

from pathlib import Path

import numpy as np
import pytest
from cases import cases
from PIL import Image

from contrastive_core.base.errors import BadSetting, UnknownName
from contrastive_core.data import datasets, image_listings
from contrastive_core.data.folder_selection import folder_preview, name_of, values_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with ten pictures in a subfolder."""
    folder = tmp_path / "set"
    (folder / "images").mkdir(parents=True)
    for i in range(10):
        Image.fromarray(np.full((12, 16, 3), 20 * i, np.uint8)).save(folder / f"images/{i}.png")
    return folder


def listed(place: Path, head: str, *lines: str) -> str:
    (place / "list.csv").write_text("\n".join((head, *lines)) + "\n", encoding="utf-8")
    return f"csv:{place / 'list.csv'}"


def both(name: str) -> tuple[datasets.Dataset, datasets.Dataset]:
    return datasets.load(name, "train"), datasets.load(name, "test")


def test_files_classes_and_splits_as_the_list_says(place: Path) -> None:
    lines = [f"images/{i}.png,{10 - i % 3},{'test' if i > 6 else 'train'}" for i in range(9, -1, -1)]
    train, test = both(listed(place, "file,label,split", *lines))
    assert train.classes == ("8", "9", "10")  # numbers by size
    assert train.ids == [f"images/{i}.png" for i in range(6, -1, -1)]
    assert test.ids == ["images/9.png", "images/8.png", "images/7.png"]
    assert [train.classes[k] for k in train.labels] == [str(10 - i % 3) for i in range(6, -1, -1)]
    assert train.images[:, 0, 0, 0].tolist() == [20 * i for i in range(6, -1, -1)]


def test_without_splits_a_fifth_of_each_class_is_set_aside(place: Path) -> None:
    lines = [f"images/{i}.png;{'ab'[i % 2]}" for i in range(10)]  # semicolons
    train, test = both(listed(place, "file;label", *lines))
    assert np.bincount(test.labels).tolist() == [1, 1]
    assert len(train) == 8


def test_further_columns_are_kept_and_any_may_be_the_label(place: Path) -> None:
    lines = [f"images/{i}.png,{'ab'[i % 2]},{i / 2},{'xyz'[i % 3]}" for i in range(10)]
    name = listed(place, "file,label,weight,kind", *lines)
    train, _ = both(name)
    at = [int(i[7]) for i in train.ids]
    assert train.factors["weight"].tolist() == [i / 2 for i in at]
    assert train.factors["kind"].tolist() == ["xyz"[i % 3] for i in at]
    gaps = [line.replace(",0.5,", ",,") for line in lines]
    train, test = both(listed(place, "file,label,weight,kind", *gaps))
    weights = np.concatenate([train.factors["weight"], test.factors["weight"]])
    assert np.isnan(weights).sum() == 1  # nothing stands there: still numbers
    name = listed(place, "file,label,weight,kind", *lines)
    by_kind = datasets.load(f"{name}#kind")
    assert by_kind.classes == ("x", "y", "z")
    assert set(by_kind.factors) == {"weight"}
    assert image_listings.columns_of(place / "list.csv") == ["label", "weight", "kind"]
    assert name_of(f"{place / 'list.csv'}#kind") == f"{name}#kind"
    preview = folder_preview(f"{place / 'list.csv'}#kind")
    assert preview.classes == ("x", "y", "z")
    assert sum(map(sum, preview.counts)) == 10
    assert values_of(f"{place / 'list.csv'}#kind")["changed"]


def test_without_labels(place: Path) -> None:
    train, _ = both(listed(place, "file", *(f"images/{i}.png" for i in range(10))))
    assert train.classes == ()
    assert set(train.labels) == {-1}


def test_what_is_left_out_is_named(place: Path, tmp_path: Path) -> None:
    (place / "images/link.png").symlink_to(place / "images/1.png")
    (place / "notes.txt").write_text("no picture")
    Image.new("RGB", (9, 9)).save(tmp_path / "far.png")
    lines = [f"images/{i}.png,a,train" for i in range(5)] + [
        "images/0.png,a,train",
        "images/1.png,b,train",
        "images/none.png,a,train",
        "../far.png,a,train",
        f"{tmp_path / 'far.png'},a,train",
        "images/link.png,a,train",
        "notes.txt,a,train",
        "images/9.png,a,val",
        ",a,train",
        "images/8.png,a,test",
    ]
    train, test = both(listed(place, "file,label,split", *lines))
    assert train.ids == [f"images/{i}.png" for i in range(5)]
    assert test.ids == ["images/8.png"]
    reasons = [why for _, why in train.skipped]
    assert reasons[0] == "already listed in line 2"
    assert reasons[1] == "already listed in line 3 with a different label"
    assert reasons[2:5] == ["there is no such file", *2 * ["it is outside the list's folder"]]
    assert reasons[5].startswith("a link; links are followed only")
    assert reasons[6:8] == ["its split is 'val', neither train nor test", "no file name given"]
    assert reasons[8].startswith("not an image in one of the formats")
    assert "Files left out of the training images: 9" in train.left_out


def test_a_way_over_a_link_and_back_does_not_lead_out(place: Path, tmp_path: Path) -> None:
    """`out/../secret.png` is `secret.png` beside the list, not one beside what `out` leads to."""
    (tmp_path / "far" / "inner").mkdir(parents=True)
    Image.new("L", (9, 9), 200).save(tmp_path / "far" / "secret.png")
    Image.new("L", (9, 9), 10).save(place / "secret.png")
    (place / "out").symlink_to(tmp_path / "far" / "inner")
    lines = ["out/../secret.png,train", "out/none.png,train", "images/0.png,test", ".,train"]
    train, _ = both(listed(place, "file,split", *lines))
    assert train.images.max() == 10
    reasons = dict(train.skipped)
    assert reasons == {"out/none.png": "a link to nothing", ".": "there is no such file"}


@cases(
    ("head", "column", "sentence"),
    [
        ("path,label", "", "needs a column 'file'"),
        ("file,label", "#kind", "has no column 'kind'; it has: file, label"),
        ("file,label,label", "", "has two columns 'label'"),
        ("file,label", "", "lists no existing images for train; 1 were left out"),
    ],
)
def test_lists_that_cannot_be_used_say_why(place: Path, head: str, column: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        datasets.load(listed(place, head, "images/none.png,a,a"[: 17 + 2 * head.count(",")]) + column)


def test_names(place: Path) -> None:
    with pytest.raises(BadSetting, match="there is no list"):
        datasets.load(f"csv:{place}/another.csv")
    with pytest.raises(ValueError, match="needs a path"):
        datasets.load("csv:")
    with pytest.raises(UnknownName, match="csv:PATH"):
        datasets.load("list.csv")
    datasets.check_name("csv:list.csv")
