"""Data sets read by torchvision: downloaded only on request, then stored as one uint8 array."""

from pathlib import Path

import numpy as np

from contrastive_core.base.errors import Damaged
from contrastive_core.base.messages import message
from contrastive_core.base.paths import data_home
from contrastive_core.data.dataset import DatasetArrays

SETS = {  # class of torchvision, download in MB, files that prove a download
    "cifar10": ("CIFAR10", 170, ("cifar-10-batches-py", "cifar-10-python.tar.gz")),
    "cifar100": ("CIFAR100", 169, ("cifar-100-python", "cifar-100-python.tar.gz")),
    "stl10": ("STL10", 2640, ("stl10_binary", "stl10_binary.tar.gz")),
    "mnist": ("MNIST", 12, ("MNIST/raw",)),
    "fashion_mnist": ("FashionMNIST", 31, ("FashionMNIST/raw",)),
}
SIZES = {name: size for name, (_, size, _) in SETS.items()}


def _folder(root: str | None) -> Path:
    return Path(root) if root else data_home() / "torchvision"


def is_there(name: str, root: str | None) -> bool:
    """Return whether the files are on this machine, in `root` or in `torchvision` in the cache."""
    return any((_folder(root) / file).exists() for file in SETS[name][2])


def how_to_get(name: str) -> str:
    """Return the message that explains the download."""
    return message(
        "{name} is not on this machine: the download is {size} MB. Add --download (or tick the box on the Train "
        "page), or give its folder with --root FOLDER",
        name=name,
        size=f"{SIZES[name]:,}",
    )


def make(name: str, split: str, root: str | None, download: bool) -> DatasetArrays:
    """Return a split as arrays; stl10's training split includes its unlabeled part (label −1). Raises Damaged."""
    from torchvision import datasets

    folder, parts = _folder(root), {"train": split == "train"}
    options = {"split": "train+unlabeled" if split == "train" else "test"} if name == "stl10" else parts
    try:
        dataset = getattr(datasets, SETS[name][0])(str(folder), download=download, **options)
    except OSError as error:
        raise Damaged("{name} in {folder} cannot be read: {error}", name=name, folder=folder, error=error) from None
    except Exception as error:  # damaged files raise many errors with torchvision's advice
        raise Damaged(
            "{name} in {folder} is incomplete or damaged. Delete its files and download it again: add --download, or "
            "tick the box on the Train page",
            name=name,
            folder=folder,
        ) from error
    images = np.asarray(dataset.data)
    if images.ndim == 3:
        images = images[:, None]
    elif images.shape[-1] == 3:  # stl10's channels come first
        images = images.transpose(0, 3, 1, 2)
    labels = dataset.labels if name == "stl10" else dataset.targets
    return {"images": images, "labels": np.asarray(labels), "classes": dataset.classes}
