"""Captions of shapes and of a folder: which image each belongs to, and a sentence for each fault."""

import re
from pathlib import Path

import numpy as np
import pytest
from cases import cases
from PIL import Image

from contrastive_core.base.errors import BadSetting
from contrastive_core.data import datasets
from contrastive_core.data.captions import add_captions, build_vocabulary
from contrastive_core.data.overrides import take, training_set

GOOD = "file,caption\n" + "".join(f"{split}/{i}.png,picture {i}\n" for split in ("train", "test") for i in range(3))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        for i in range(3):
            Image.new("RGB", (8, 8), (90 * i, 0, 0)).save(tmp_path / split / f"{i}.png")
    return tmp_path


def texts(folder: Path, split: str = "train") -> list[str]:
    captions = add_captions(datasets.load(f"folder:{folder}", split)).captions
    assert captions is not None
    return [f"{i} {text}" for i, text in zip(captions.image, captions.texts, strict=True)]


def test_shapes_are_described_by_their_factors() -> None:
    dataset = datasets.load("shapes", "test")
    described, again = add_captions(dataset), add_captions(dataset)
    captions = described.captions
    assert captions is not None
    assert again.captions is not None
    assert captions.texts == again.captions.texts
    assert set(captions.image.tolist()) == set(range(1000))
    assert not [text for text in captions.texts if re.search(r"\ba [aeiou]|\ban [^aeiou]", text)]
    assert np.all(np.diff(captions.image) >= 0)
    for row, text in zip(captions.image, captions.texts, strict=True):
        assert dataset.classes[dataset.labels[row]] in text.split()
        assert ("striped" in text) == (dataset.factors["texture"][row] == 1)
    keep = np.array([7, 3])
    few = take(described, keep).captions
    assert few is not None
    for i, row in enumerate(keep):
        assert [t for t, k in zip(few.texts, few.image, strict=True) if k == i] == [
            t for t, k in zip(captions.texts, captions.image, strict=True) if k == row
        ]


def test_a_folder_has_several_captions_of_a_file(folder: Path) -> None:
    (folder / "captions.csv").write_text(GOOD + 'train/1.png,"another, of one"\n')
    assert texts(folder) == ["0 picture 0", "1 picture 1", "1 another, of one", "2 picture 2"]
    assert texts(folder, "test") == ["0 picture 0", "1 picture 1", "2 picture 2"]


@cases(
    ("content", "sentence"),
    [
        (None, "there is no .*captions.csv"),
        (b"file,text\n", "needs a column 'caption'"),
        (b"file,caption\n\xff\xfe\x00,a\n", "cannot read"),
        (GOOD.encode() + b"train/9.png,nothing\n", "line 8 has a caption for 'train/9.png'"),
        (GOOD.encode() + b"../x.png,outside\n", "line 8 has a caption for '../x.png'"),
        (GOOD.encode() + b"train/1.png," + b"x" * 1001, "has 1,001 characters; at most 1,000"),
        (b"file,caption\ntest/1.png,of a test image\n", "no caption for any of the training images"),
        (b"file,caption\ntrain/1.png, \n", "no caption for any of the training images"),
    ],
)
def test_each_fault_is_one_sentence(folder: Path, content: bytes | None, sentence: str) -> None:
    if content is not None:
        (folder / "captions.csv").write_bytes(content)
    with pytest.raises(BadSetting, match=sentence):
        texts(folder)


@pytest.mark.parametrize(
    ("lost", "sentences"),
    [
        ([], ""),
        (["train/1.png,picture 1"], "Training images without a caption are left out: 1 of 3, the first is 1.png."),
        (["test/1.png,picture 1"], ""),
    ],
)
def test_images_without_a_caption_are_left_out_of_training(folder: Path, lost: list[str], sentences: str) -> None:
    (folder / "captions.csv").write_text("".join(line for line in GOOD.splitlines(True) if line.strip() not in lost))
    every = datasets.load(f"folder:{folder}")
    made = training_set(every, True, None, None)
    assert made.left_out == sentences
    assert made.captions is not None
    assert made.ids == [id for id in every.ids if f"train/{id}" not in "".join(lost)]
    assert [made.ids[i][0] for i in made.captions.image] == [text[-1] for text in made.captions.texts]
    assert training_set(every, False, None, None) is every


def test_empty_captions_are_counted_and_too_few_captions_refused(folder: Path) -> None:
    every, path = datasets.load(f"folder:{folder}"), folder / "captions.csv"
    path.write_text(GOOD + "train/1.png, \ntrain/2.png,\n")
    said = "Empty captions in captions.csv are left out: 2, the first in line 8."
    assert training_set(every, True, None, None).left_out == said
    path.write_text("file,caption\ntrain/1.png,alone\n")
    with pytest.raises(BadSetting, match="has captions of 1 of 3 training images; two or more are needed"):
        training_set(every, True, None, None)
    (folder / "given.csv").write_text("id,label\n1.png#1,2.png\n")  # to an image that had none
    path.write_text("file,caption\ntrain/1.png,of another\ntrain/0.png,own\n")
    made = training_set(every, True, None, str(folder / "given.csv"))
    assert made.ids == ["0.png", "2.png"]
    assert made.left_out == ""  # a person took the caption of the third


def test_words_become_tokens() -> None:
    words = build_vocabulary(["A red star", "a blue star, small"])
    assert words.words[:2] == ("a", "star")
    assert words.encode(["a GREEN star", ""], 4).tolist() == [[2, 1, 3, 0], [0, 0, 0, 0]]
    assert len(build_vocabulary(["a b c"], size=2)) == 4
