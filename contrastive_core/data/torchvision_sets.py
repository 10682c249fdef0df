"""Data sets that torchvision reads: fetched only when asked for, then kept as one uint8 array."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contrastive_core.data.dataset import DatasetArrays
from contrastive_core.errors import Damaged
from contrastive_core.messages import message
from contrastive_core.paths import data_home

__all__ = ["SIZES", "how_to_get", "is_there", "make"]

SIZES = {  # megabytes that a download moves
    "cifar10": 170,
    "cifar100": 169,
    "stl10": 2640,
    "mnist": 12,
    "fashion_mnist": 31,
}
FILES = {  # one of these is there once it has been fetched
    "cifar10": ("cifar-10-batches-py", "cifar-10-python.tar.gz"),
    "cifar100": ("cifar-100-python", "cifar-100-python.tar.gz"),
    "stl10": ("stl10_binary", "stl10_binary.tar.gz"),
    "mnist": ("MNIST/raw",),
    "fashion_mnist": ("FashionMNIST/raw",),
}


def root_of(root: str | None) -> Path:
    """Where the files lie: `root`, or `torchvision` beside the cache."""
    return Path(root) if root else data_home() / "torchvision"


def is_there(name: str, root: str | None) -> bool:
    """Whether the files are on this machine."""
    return any((root_of(root) / f).exists() for f in FILES[name])


def how_to_get(name: str) -> str:
    """The sentence that asks for a download."""
    return message(
        "{name} is not on this machine: fetching it moves {size} MB. Add --download (or "
        "tick the box on the Train page), or give --root FOLDER where its files lie",
        name=name,
        size=f"{SIZES[name]:,}",
    )


def make(name: str, split: str, root: str | None, download: bool) -> DatasetArrays:
    """A split as arrays; stl10's training split has its unlabeled part too (label −1).

    Raises: Damaged when torchvision cannot read the files.
    """
    from torchvision import datasets

    folder = root_of(root)
    kinds = {
        "cifar10": datasets.CIFAR10,
        "cifar100": datasets.CIFAR100,
        "mnist": datasets.MNIST,
        "fashion_mnist": datasets.FashionMNIST,
    }
    try:
        if name == "stl10":
            part = "train+unlabeled" if split == "train" else "test"
            dataset = datasets.STL10(str(folder), part, download=download)
            classes, images = dataset.classes, dataset.data
            return {"images": images, "labels": np.asarray(dataset.labels), "classes": classes}
        dataset = kinds[name](str(folder), train=split == "train", download=download)
    except (RuntimeError, OSError, EOFError, KeyError) as error:
        raise Damaged(
            message("{name} in {folder} cannot be read: {error}", name=name, folder=folder, error=error)
        ) from None
    images = np.asarray(dataset.data)
    images = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    return {"images": images, "labels": np.asarray(dataset.targets), "classes": dataset.classes}
