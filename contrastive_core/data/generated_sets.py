"""Data sets that need no download: digits, digits with wrong labels, and shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from contrastive_core.data import shapes
from contrastive_core.data.dataset import DatasetArrays

SEED = 0
SHAPES_SEED = {"train": 0, "test": 1}
WRONG_LABELS = {"train": 10, "test": 3}


def digits(split: str) -> DatasetArrays:
    """scikit-learn's 1,797 gray 8×8 digits: 1,437 for training, 360 for the test, by class."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    rows = np.arange(len(digits.target))
    train, test = train_test_split(rows, test_size=360, random_state=SEED, stratify=digits.target)
    rows = np.sort(train if split == "train" else test)
    images = np.round(digits.images[rows] * (255 / 16)).astype(np.uint8)[:, None]  # (n, 1, 8, 8)
    return {
        "images": images,
        "labels": digits.target[rows],
        "classes": [str(i) for i in range(10)],
        "ids": [f"digits/{i:04d}" for i in rows],
    }


def digits_mislabeled(split: str) -> DatasetArrays:
    """digits with thirteen labels changed on purpose: an example of what Samples finds."""
    arrays = digits(split)
    labels: np.ndarray = arrays["labels"].copy()
    rng, count = np.random.default_rng(SEED), WRONG_LABELS[split]
    rows = rng.choice(len(labels), count, replace=False)
    labels[rows] = (labels[rows] + rng.integers(1, 10, count)) % 10
    arrays["labels"] = labels
    return arrays


def rendered_shapes(split: str) -> DatasetArrays:
    """Return the images of shapes.py, with the factors they were drawn from."""
    n = shapes.TRAIN if split == "train" else shapes.TEST
    images, labels, factors = shapes.make(n, seed=SHAPES_SEED[split])
    return {"images": images, "labels": labels, "classes": shapes.CLASSES, "factors": factors}


GENERATED: dict[str, Callable[[str], DatasetArrays]] = {
    "digits": digits,
    "shapes": rendered_shapes,
    "digits_mislabeled": digits_mislabeled,
}
