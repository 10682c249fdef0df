"""Captions of images, and samples and captions left out of a training set or moved by their ids."""

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cases import cases
from PIL import Image

from contrastive_core import runs
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.storage import SHIPPED
from contrastive_core.compare import embed
from contrastive_core.data import datasets, overrides
from contrastive_core.data.batch_loader import BatchLoader
from contrastive_core.data.captions import add_captions, build_vocabulary
from contrastive_core.data.dataset import Captions, Dataset
from contrastive_core.data.overrides import curated, take, training_set
from contrastive_core.lab.batch import load_batch
from contrastive_core.lab.lab_view import BatchRequest
from contrastive_core.ops.collectives import World
from contrastive_core.samples import run_samples as sample_build

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


class Watched:
    """In place of a memory map of images: keeps how many bytes were read at once, at most."""

    def __init__(self, images: np.ndarray) -> None:
        self.images, self.most = images, 0
        self.shape, self.dtype, self.ndim, self.size = (images.shape, images.dtype, images.ndim, images.size)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: Any) -> np.ndarray:
        found = np.asarray(self.images[rows])
        self.most = max(self.most, found.nbytes)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise AssertionError("all images are read into memory")


def test_the_rows_that_stay_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    every = datasets.load("digits")
    gone = tmp_path / "gone.txt"
    gone.write_text("\n".join(every.ids[::3]))
    indexed = overrides.curated(every, str(gone), None)
    keep = np.arange(len(every)) % 3 > 0
    copied = dataclasses.replace(indexed, images=every.images[keep])
    assert isinstance(indexed.images, overrides.ImageRows)
    assert indexed.images.images is every.images  # the memory map itself
    assert indexed.images.shape == copied.images.shape
    assert indexed.images.size == copied.images.size
    assert np.array_equal(np.asarray(indexed.images), copied.images)
    parts = [(slice(None), slice(None), slice(None, None, 2)), (0, slice(None), slice(1, 3))]
    for rows in (np.array([5, 1, 7]), slice(2, 9), 3, *parts, (np.array([4, 2]), slice(0, 1))):
        assert np.array_equal(indexed.images[rows], copied.images[rows])
    batches = [
        BatchLoader(d, "shuffled", 8, 0, torch.device("cpu"), World(0, 1, 0, 1)).batch(np.array([9, 4, 100]))
        for d in (indexed, copied)
    ]
    assert torch.equal(batches[0].images, batches[1].images)
    assert torch.equal(batches[0].labels, batches[1].labels)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[runs.Run, Watched]:
    """A run without one of its training images, which are read through `Watched`."""
    digits = datasets.load("digits", "train")
    gone = tmp_path / "gone.txt"
    gone.write_text(digits.ids[0])
    config = {**runs.load("simclr-digits").config, "exclude": str(gone)}
    run = runs.create("fewer", config)
    shutil.copy(SHIPPED / "simclr-digits" / "weights.safetensors", run.weights)
    images = Watched(digits.images)
    monkeypatch.setattr(embed, "data_of", lambda run, split: dataclasses.replace(digits, images=images))
    monkeypatch.setattr(sample_build, "data_of", lambda run, split: dataclasses.replace(digits, images=images))
    monkeypatch.setattr("contrastive_core.lab.batch.data_of", lambda *_: dataclasses.replace(digits, images=images))
    monkeypatch.setattr(embed, "CHUNK", 100)
    return run, images


def test_samples_read_no_copy_of_all_images(watched: tuple[runs.Run, Watched], monkeypatch: pytest.MonkeyPatch) -> None:
    run, images = watched
    dataset, h, z = sample_build.rows_of(run, "train", "cpu")
    assert len(dataset) == len(h) == len(z) == len(images) - 1
    monkeypatch.setattr(sample_build, "MOST", 4 * len(images))  # four pixels of each
    pixels, _ = sample_build.pixel_rows(dataset.images)
    assert np.array_equal(pixels, images.images[1:, 0, ::4, ::4].reshape(-1, 4) / np.float32(255))
    assert images.most <= max(100 * 64, pixels.size)  # of 1,437 · 64


def test_the_loss_lab_reads_no_copy_of_all_images(watched: tuple[runs.Run, Watched]) -> None:
    run, images = watched
    batch = load_batch(run, BatchRequest("z", 8, 2, 0, "queue"))
    assert batch.rows.shape[:2] == (8, 2)
    assert 0 < images.most <= 24 * 64


def test_rows_are_no_copy_where_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.load("simclr-digits")
    kept = embed.embed_run(run, "test", "h", "cpu")
    monkeypatch.setattr(sample_build, "embed_run", lambda *_: kept)
    _, h, _ = sample_build.rows_of(run, "test", "cpu")
    assert np.shares_memory(h.features, kept.features)
    assert h.content_hash == kept.content_hash


# --- captions ---


@pytest.fixture
def dataset() -> Dataset:
    images = np.zeros((4, 3, 2, 2), np.uint8)
    plain = Dataset("folder:x", "train", images, np.array([0, 1, 0, 1]), ("a", "b"), list("wxyz"), "f")
    return dataclasses.replace(
        plain, captions=Captions(("w1", "w2", "x1", "y1", "z1", "z2"), np.array([0, 0, 1, 2, 3, 3]))
    )


def texts_of(dataset: Dataset) -> dict[str, list[str]]:
    assert dataset.captions is not None
    found: dict[str, list[str]] = {id: [] for id in dataset.ids}
    for text, i in zip(dataset.captions.texts, dataset.captions.image, strict=True):
        found[dataset.ids[i]].append(text)
    return found


def written(folder: Path, exclude: str = "", relabel: str = "") -> tuple[str | None, str | None]:
    paths = []
    for name, head, text in (("exclude", "id", exclude), ("relabel", "id,label", relabel)):
        (folder / f"{name}.csv").write_text("\n".join([head, *text.split()]))
        paths.append(str(folder / f"{name}.csv") if text else None)
    return paths[0], paths[1]


@cases(
    ("exclude", "relabel", "expected"),
    [
        ("w#1", "", {"w": ["w2"], "x": ["x1"], "y": ["y1"], "z": ["z1", "z2"]}),
        ("y#1", "", {"w": ["w1", "w2"], "x": ["x1"], "z": ["z1", "z2"]}),  # an image without a caption goes too
        ("z w#2", "", {"w": ["w1"], "x": ["x1"], "y": ["y1"]}),
        ("", "w#2,y", {"w": ["w1"], "x": ["x1"], "y": ["w2", "y1"], "z": ["z1", "z2"]}),
        ("", "x#1,y", {"w": ["w1", "w2"], "y": ["x1", "y1"], "z": ["z1", "z2"]}),
        ("w#1", "w#2,x z,0", {"x": ["w2", "x1"], "y": ["y1"], "z": ["z1", "z2"]}),  # numbers are those before
    ],
)
def test_captions_are_left_out_or_given_to_their_true_image(
    tmp_path: Path, dataset: Dataset, exclude: str, relabel: str, expected: dict[str, list[str]]
) -> None:
    made = curated(dataset, *written(tmp_path, exclude, relabel))
    assert texts_of(made) == expected
    assert made.ids == list(expected)
    assert len(made.images) == len(made.labels) == len(expected)
    if "z,0" in relabel:
        assert made.labels[-1] == 0


@pytest.mark.parametrize(
    ("exclude", "relabel", "words"),
    [
        ("w#3", "", "ids that are not in .*: 1, for example 'w#3'"),
        ("", "w#1,q", "belongs to 'q', which is not a training image"),
        ("w x y z", "", "excludes every training image"),
    ],
)
def test_unknown_captions_and_images_have_their_sentence(
    tmp_path: Path, dataset: Dataset, exclude: str, relabel: str, words: str
) -> None:
    with pytest.raises(BadSetting, match=words):
        curated(dataset, *written(tmp_path, exclude, relabel))
