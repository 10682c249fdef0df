"""Data sets with a name of their own: digits, digits with wrong labels and shapes, which need no download, and those of
torchvision.

`shapes` are generated images with known factors, on which methods differ: eight outlines on a background, each with a
color of any hue. The color is unrelated to the class, but two crops of one image share it, so an encoder that may use
color learns little else. The images have 32×32 pixels, drawn at four times the size and averaged."""

import colorsys
from pathlib import Path

import numpy as np

from contrastive_core.base.errors import Damaged
from contrastive_core.base.storage import data_home
from contrastive_core.data.dataset import DatasetArrays

SEED = 0
WRONG_LABELS = {"train": 10, "test": 3}
SHAPES = {"train": (5000, 0), "test": (1000, 1)}  # images and seed
CLASSES = ("disc", "square", "triangle", "star", "cross", "ring", "heart", "crescent")
TEXTURES = ("plain", "stripes", "dots", "gradient")
FACTORS = ("hue", "background_hue", "x", "y", "radius", "angle", "texture", "clutter", "noise")
SIZE, FINE = 32, 4  # pixels, and samples along each side of one
CONTRAST = 0.25  # least difference of luminance between shape and background
LUMA = np.array([0.299, 0.587, 0.114])


def digits(split: str) -> DatasetArrays:
    """Return scikit-learn's 1,797 gray 8×8 digits: 1,437 for training, 360 for the test, stratified by class."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    rows = np.arange(len(digits.target))
    train, test = train_test_split(rows, test_size=360, random_state=SEED, stratify=digits.target)
    rows = np.sort(train if split == "train" else test)
    images = np.round(digits.images[rows] * (255 / 16)).astype(np.uint8)[:, None]  # (n, 1, 8, 8)
    ids = [f"digits/{i:04d}" for i in rows]
    return {"images": images, "labels": digits.target[rows], "classes": list("0123456789"), "ids": ids}


def digits_mislabeled(split: str) -> DatasetArrays:
    """Return digits with thirteen wrong labels: 10 in the training set and 3 in the test set."""
    arrays = digits(split)
    labels: np.ndarray = arrays["labels"].copy()
    rng, count = np.random.default_rng(SEED), WRONG_LABELS[split]
    rows = rng.choice(len(labels), count, replace=False)
    labels[rows] = (labels[rows] + rng.integers(1, 10, count)) % 10
    arrays["labels"] = labels
    return arrays


def shapes(split: str) -> DatasetArrays:
    """Return images of shapes with the factors that generated them."""
    images, labels, factors = make_shapes(*SHAPES[split])
    return {"images": images, "labels": labels, "classes": CLASSES, "factors": factors}


GENERATED = {"digits": digits, "shapes": shapes, "digits_mislabeled": digits_mislabeled}


def make_shapes(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return `n` images (n, 3, 32, 32) uint8, their balanced classes (n), and their factors by name (n each)."""
    rng = np.random.default_rng([seed, n])
    labels = rng.permutation(np.arange(n) % len(CLASSES)).astype(np.int64)
    images = np.empty((n, 3, SIZE, SIZE), np.uint8)
    rows = []
    for i, label in enumerate(labels):
        images[i], image_factors = _image(int(label), rng)
        rows.append(image_factors)
    return images, labels, dict(zip(FACTORS, np.array(rows, np.float32).T.copy(), strict=True))


def _image(label: int, rng: np.random.Generator) -> tuple[np.ndarray, tuple[float, ...]]:
    center, radius = rng.uniform(-5, 5, 2), rng.uniform(8, 12)
    angle, texture = rng.uniform(-20, 20), int(rng.integers(len(TEXTURES)))
    front = back = np.zeros(3)
    while abs(LUMA @ front - LUMA @ back) < CONTRAST:
        hues = rng.random(2)
        s, v = rng.uniform(0.4, 1, 2), rng.uniform(0.25, 1, 2)
        front, back = (np.array(colorsys.hsv_to_rgb(hues[j], s[j], v[j])) for j in (0, 1))
    inside = _supersampled(label, center, radius, np.deg2rad(angle))  # (32, 32) share covered
    canvas = np.broadcast_to(back[:, None, None], (3, SIZE, SIZE)).copy()
    clutter = rng.random() < 0.6
    dot, dot_hue = rng.uniform(3, SIZE - 3, 2), rng.random()
    if clutter:  # a dot behind the shape
        cover = _supersampled(0, dot - SIZE / 2, 3.0, 0.0)
        color = np.array(colorsys.hsv_to_rgb(dot_hue, 0.7, 0.8))[:, None, None]
        canvas += cover * (color - canvas)
    fill = front[:, None, None] * _texture(texture, rng)
    canvas += inside * (fill - canvas)
    noise = rng.uniform(0, 0.04)
    canvas += rng.normal(0, 1, canvas.shape) * noise
    factors = (*hues, *center, radius, angle, texture, float(clutter), noise)
    return np.round(canvas.clip(0, 1) * 255).astype(np.uint8), factors


def _texture(kind: int, rng: np.random.Generator) -> np.ndarray:
    """Return the brightness of the shape's surface (32, 32), at most 1."""
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    period, phase, way = rng.uniform(3.5, 6.5), rng.uniform(0, 6.28), rng.uniform(0, np.pi)
    along = x * np.cos(way) + y * np.sin(way)
    across = y * np.cos(way) - x * np.sin(way)
    if TEXTURES[kind] == "stripes":
        return 0.8 + 0.2 * np.sign(np.sin(along * 2 * np.pi / period + phase))
    if TEXTURES[kind] == "dots":
        wave = np.sin(along * 2 * np.pi / period + phase) * np.sin(across * 2 * np.pi / period)
        return 1.0 - 0.4 * (wave > 0.3)
    if TEXTURES[kind] == "gradient":
        return 0.8 + 0.2 * (along - along.mean()) / (np.abs(along - along.mean()).max())
    return np.ones((SIZE, SIZE))


def _supersampled(label: int, center: np.ndarray, radius: float, angle: float) -> np.ndarray:
    """Return the share of each pixel that a shape covers (32, 32)."""
    step = (np.arange(SIZE * FINE) + 0.5) / FINE - SIZE / 2
    x, y = np.meshgrid(step - center[0], step - center[1])
    c, s = np.cos(angle), np.sin(angle)
    inside = _OUTLINES[label]((x * c + y * s) / radius, (y * c - x * s) / radius)
    return inside.reshape(SIZE, FINE, SIZE, FINE).mean((1, 3))


def _polygon(corners: int, inner: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return whether points lie inside a star with `corners` tips at radius 1 and notches at `inner`, one tip up."""
    sector = np.pi / corners
    a = np.mod(np.arctan2(x, -y), 2 * sector)
    a = np.minimum(a, 2 * sector - a)  # angle from the nearest tip
    r = np.hypot(x, y)
    tip, notch = np.array([1.0, 0.0]), inner * np.array([np.cos(sector), np.sin(sector)])
    edge = notch - tip
    px, py = r * np.cos(a) - tip[0], r * np.sin(a) - tip[1]
    return edge[0] * py - edge[1] * px >= 0


def _heart(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = 1.15 * x, -1.15 * y + 0.05
    return (x * x + y * y - 0.75) ** 3 - 1.1 * x * x * y**3 <= 0


_OUTLINES = (
    lambda x, y: np.hypot(x, y) <= 0.9,
    lambda x, y: np.maximum(np.abs(x), np.abs(y)) <= 0.8,
    lambda x, y: _polygon(3, 0.5, x, y),
    lambda x, y: _polygon(5, 0.42, x, y),
    lambda x, y: (np.minimum(np.abs(x), np.abs(y)) <= 0.28) & (np.maximum(abs(x), abs(y)) <= 0.95),
    lambda x, y: np.abs(np.hypot(x, y) - 0.75) <= 0.22,
    _heart,
    lambda x, y: (np.hypot(x, y) <= 0.95) & (np.hypot(x - 0.42, y) > 0.72),
)


# --- sets of torchvision, downloaded only on request ---


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
