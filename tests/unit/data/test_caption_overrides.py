"""Captions are left out, or given to another image, by the ids of the Samples page."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from cases import cases

from contrastive_core.base.errors import BadSetting
from contrastive_core.data.dataset import Captions, Dataset
from contrastive_core.data.overrides import curated


@pytest.fixture
def dataset() -> Dataset:
    images = np.zeros((4, 3, 2, 2), np.uint8)
    plain = Dataset("folder:x", "train", images, np.array([0, 1, 0, 1]), ("a", "b"), list("wxyz"), "f")
    return dataclasses.replace(
        plain, captions=Captions(("w1", "w2", "x1", "y1", "z1", "z2"), np.array([0, 0, 1, 2, 3, 3]))
    )


def texts(dataset: Dataset) -> dict[str, list[str]]:
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
    assert texts(made) == expected
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
