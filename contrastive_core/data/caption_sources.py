"""Sources of captions: the factors of `shapes`, and `captions.csv` in a folder of images.

`captions.csv` has the columns `file`, a path below the folder, and `caption`; a file may have several lines.
"""

import dataclasses
import os
from pathlib import Path

import numpy as np

from contrastive_core.data.captions import Captions
from contrastive_core.data.dataset import Dataset
from contrastive_core.data.generated_sets import CLASSES, TEXTURES
from contrastive_core.data.image_folder import FOR_TEST
from contrastive_core.data.image_list import FILE, read_table
from contrastive_core.errors import BadSetting
from contrastive_core.storage.regular_files import printable

FILENAME, CAPTION = "captions.csv", "caption"
LONGEST = 1000  # characters of a caption
SEED = 32
HUES = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink")
HUE_ENDS = np.array([15, 45, 75, 160, 195, 260, 300, 345]) / 360  # where each hue's name ends
SIZE_ENDS = (9.33, 10.67)  # pixels of the radius
SIZES = ("small", "", "large")
SURFACES = dict(zip(TEXTURES, ("", "striped", "dotted", "shaded"), strict=True))
PHRASES = (
    "a {thing} on {back}",
    "a picture of a {thing} on {back}",
    "{back} background with a {thing}",
    "a {thing} in front of {back}",
)


def add_captions(dataset: Dataset) -> Dataset:
    """Return the data set with captions. Raises BadSetting where there are none, or where they do not fit."""
    return dataclasses.replace(dataset, captions=captions_of(dataset))


def captions_of(dataset: Dataset) -> Captions:
    """Return the captions of a data set. Raises BadSetting where there are none, or where they do not fit."""
    if dataset.name == "shapes":
        return _captions_of_shapes(dataset)
    if not dataset.name.startswith("folder:"):
        raise BadSetting(
            "{name} has no captions; choose shapes, or a folder of images with a file captions.csv", name=dataset.name
        )
    return _captions_of_folder(dataset)


def _captions_of_shapes(dataset: Dataset) -> Captions:
    """One or two captions of each image; the same for every call."""
    rng = np.random.default_rng([SEED, dataset.split == "test"])
    texts, image = [], []
    names = {k: np.searchsorted(HUE_ENDS, dataset.factors[k]) % len(HUES) for k in ("hue", "background_hue")}
    sizes = np.searchsorted(SIZE_ENDS, dataset.factors["radius"])
    for i, label in enumerate(dataset.labels):
        surface = SURFACES[TEXTURES[int(dataset.factors["texture"][i])]]
        words = (SIZES[sizes[i]], surface, HUES[names["hue"][i]], CLASSES[label])
        thing, back = " ".join(filter(None, words)), HUES[names["background_hue"][i]]
        for phrase in rng.choice(len(PHRASES), rng.integers(1, 3), replace=False):
            texts.append(PHRASES[phrase].format(thing=thing, back=back))
            image.append(i)
    return Captions(tuple(texts), np.array(image, np.int64))


def _captions_of_folder(dataset: Dataset) -> Captions:
    root = Path(dataset.name.removeprefix("folder:")).expanduser()
    path = root / FILENAME
    if not path.exists():
        raise BadSetting(
            "there is no {path}; captions are read from this file, with the columns file and caption",
            path=printable(path),
        )
    by_file = _read_captions(path)
    parts = ("train",) if dataset.split == "train" else ("test", *FOR_TEST)
    rows = {f"{part}/{id}": i for i, id in enumerate(dataset.ids) for part in parts}
    rows |= {id: i for i, id in enumerate(dataset.ids) if id not in rows}
    texts: list[list[str]] = [[] for _ in dataset.ids]
    for file, (line, captions) in by_file.items():
        if file in rows:
            texts[rows[file]] += captions
        elif not _is_inside(root, file):
            values = {"path": printable(path), "line": f"{line:,}", "file": f"{printable(file, 80)!r}"}
            raise BadSetting("{path}: line {line} has a caption of {file}, which is no file of the folder", **values)
    if missing := [id for id, each in zip(dataset.ids, texts, strict=True) if not each]:
        values = {"path": printable(path), "n": f"{len(missing):,}", "first": f"{printable(missing[0], 80)!r}"}
        raise BadSetting("{path} has no caption of {first}; images without a caption: {n}", **values)
    image = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    return Captions(tuple(text for each in texts for text in each), image)


def _read_captions(path: Path) -> dict[str, tuple[int, list[str]]]:
    """Return the first line of each file, and its captions. Raises BadSetting."""
    found: dict[str, tuple[int, list[str]]] = {}
    for line, row in enumerate(read_table(path, FILE, CAPTION)[1], 2):
        file, text = ((row[k] or "").strip() for k in (FILE, CAPTION))
        values = {"path": printable(path), "line": f"{line:,}", "n": f"{len(text):,}", "longest": f"{LONGEST:,}"}
        if not text:
            raise BadSetting("{path}: the caption in line {line} is empty", **values)
        if len(text) > LONGEST:
            raise BadSetting(
                "{path}: the caption in line {line} has {n} characters; at most {longest} are allowed", **values
            )
        found.setdefault(file.replace("\\", "/").removeprefix("./"), (line, []))[1].append(text)
    return found


def _is_inside(root: Path, file: str) -> bool:
    """Whether a name is that of a file below the folder, for instance an image of the other split."""
    plain = os.path.normpath(file)
    is_below = not os.path.isabs(plain) and plain.split(os.sep)[0] != os.pardir
    return is_below and "\0" not in file and os.path.isfile(root / plain)
