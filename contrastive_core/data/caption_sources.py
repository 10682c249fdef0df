"""Sources of captions: the factors of `shapes`, and `captions.csv` in a folder of images.

`captions.csv` has the columns `file`, a path below the folder, and `caption`; a file may have several lines. Images
without a caption and empty captions are left out, with a note."""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.safe_files import printable
from contrastive_core.data.captions import CAPTIONS_FILE, LENGTH, Captions, split_words
from contrastive_core.data.dataset import Dataset
from contrastive_core.data.generated_sets import CLASSES, TEXTURES
from contrastive_core.data.image_folder import FOR_TEST
from contrastive_core.data.image_list import FILE, read_table
from contrastive_core.data.overrides import curated, take

CAPTION = "caption"
LONGEST = 1000  # characters of a caption
EMPTY = N_("Empty captions in captions.csv are left out: {n}, the first in line {first}.")
LONG = N_("{n} captions in captions.csv are long: the text tower reads their first {most} words.")
LACKING = N_("Training images without a caption are left out: {n} of {all}, the first is {first}.")
SEED = 32
HUES = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink")
HUE_ENDS = np.array([15, 45, 75, 160, 195, 260, 300, 345]) / 360  # upper end of each hue's name
SIZE_ENDS = (9.33, 10.67)  # pixels of the radius
SIZES = ("small", "", "large")
SURFACES = dict(zip(TEXTURES, ("", "striped", "dotted", "shaded"), strict=True))
PHRASES = (
    "{thing} on {back}",
    "a picture of {thing} on {back}",
    "{back} background with {thing}",
    "{thing} in front of {back}",
)


@dataclass(frozen=True)
class CaptionFile:
    """Content of a `captions.csv`: the first line and the captions of each file, and the lines with empty captions."""

    path: Path
    by_file: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    empty: list[int] = field(default_factory=list)

    @property
    def remark(self) -> str:
        """Sentences about empty captions and about captions that a text tower cuts off; "" for none."""
        parts = []
        if self.empty:
            parts.append(message(EMPTY, n=f"{len(self.empty):,}", first=f"{self.empty[0]:,}"))
        texts = (text for _, texts in self.by_file.values() for text in texts)
        if long := sum(len(split_words(text)) > LENGTH for text in texts):
            parts.append(message(LONG, n=f"{long:,}", most=LENGTH))
        return join(" ", parts) if parts else ""


def training_set(dataset: Dataset, needs_captions: bool, exclude: str | None, relabel: str | None) -> Dataset:
    """Prepare a data set for training: without the samples of `exclude`, with the classes of `relabel`. If the method
    needs captions, they are added and images without one are left out. Raises BadSetting."""
    if not needs_captions:
        return curated(dataset, exclude, relabel)
    dataset = curated(add_captions(dataset), exclude, relabel)
    assert dataset.captions is not None
    keep = np.unique(dataset.captions.image)
    if (n := len(dataset) - len(keep)) == 0:
        return dataset
    names = {"n": f"{n:,}", "all": f"{len(dataset):,}", "kept": f"{len(keep):,}"}
    if len(keep) < 2:
        raise BadSetting(
            "captions.csv has captions of {kept} of {all} training images; two or more are needed", **names
        )
    first = dataset.ids[int(np.setdiff1d(np.arange(len(dataset)), keep)[0])]
    remark = message(LACKING, **names, first=printable(first, 80))
    dataset = take(dataset, keep)
    return dataclasses.replace(dataset, remarks=(*dataset.remarks, remark))


def add_captions(dataset: Dataset) -> Dataset:
    """Return the data set with at least one caption; single images may lack one. Raises BadSetting if there are none or
    if they do not match the images."""
    if dataset.name == "shapes":
        return dataclasses.replace(dataset, captions=_captions_of_shapes(dataset))
    if not dataset.name.startswith("folder:"):
        raise BadSetting(
            "{name} has no captions; choose shapes, or a folder of images with a file captions.csv", name=dataset.name
        )
    root = Path(dataset.name.removeprefix("folder:")).expanduser()
    file = read_captions(root / CAPTIONS_FILE)
    captions = captions_for(file, dataset.ids, dataset.split)
    if not captions.texts:
        images = N_("the training images") if dataset.split == "train" else N_("the test images")
        raise BadSetting("{path} has no caption for any of {images}", path=printable(file.path), images=images)
    remarks = (*dataset.remarks, *filter(None, [file.remark]))
    return dataclasses.replace(dataset, captions=captions, remarks=remarks)


def captions_of(dataset: Dataset) -> Captions:
    """Return the captions of a data set. Raises the errors of `add_captions`."""
    captions = add_captions(dataset).captions
    assert captions is not None
    return captions


def _captions_of_shapes(dataset: Dataset) -> Captions:
    """Generate one or two captions for each image, equal in every call."""
    rng = np.random.default_rng([SEED, dataset.split == "test"])
    texts, image = [], []
    names = {k: np.searchsorted(HUE_ENDS, dataset.factors[k]) % len(HUES) for k in ("hue", "background_hue")}
    sizes = np.searchsorted(SIZE_ENDS, dataset.factors["radius"])
    for i, label in enumerate(dataset.labels):
        surface = SURFACES[TEXTURES[int(dataset.factors["texture"][i])]]
        words = [*filter(None, (SIZES[sizes[i]], surface, HUES[names["hue"][i]], CLASSES[label]))]
        thing = " ".join(["an" if words[0][0] in "aeiou" else "a", *words])
        back = HUES[names["background_hue"][i]]
        for phrase in rng.choice(len(PHRASES), rng.integers(1, 3), replace=False):
            texts.append(PHRASES[phrase].format(thing=thing, back=back))
            image.append(i)
    return Captions(tuple(texts), np.array(image, np.int64))


def captions_for(file: CaptionFile, ids: Sequence[str], split: str) -> Captions:
    """Return the captions of a split's images; some may lack one. Raises BadSetting for a caption without a file."""
    parts = ("train",) if split == "train" else ("test", *FOR_TEST)
    rows = {f"{part}/{id}": i for i, id in enumerate(ids) for part in parts}
    rows |= {id: i for i, id in enumerate(ids) if id not in rows}
    texts: list[list[str]] = [[] for _ in ids]
    for name, (line, captions) in file.by_file.items():
        if name in rows:
            texts[rows[name]] += captions
        elif not _is_inside(file.path.parent, name):  # images of the other split are inside
            values = {"path": printable(file.path), "line": f"{line:,}", "file": f"{printable(name, 80)!r}"}
            raise BadSetting("{path}: line {line} has a caption for {file}, which is not in the folder", **values)
    image = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    return Captions(tuple(text for each in texts for text in each), image)


def read_captions(path: Path) -> CaptionFile:
    """Read a file of captions. Raises BadSetting."""
    if not path.exists():
        raise BadSetting(
            "there is no {path}; captions are read from this file, with the columns file and caption",
            path=printable(path),
        )
    found = CaptionFile(path)
    for line, row in enumerate(read_table(path, FILE, CAPTION)[1], 2):
        file, text = ((row[k] or "").strip() for k in (FILE, CAPTION))
        if len(text) > LONGEST:
            values = {"path": printable(path), "line": f"{line:,}", "n": f"{len(text):,}", "longest": f"{LONGEST:,}"}
            raise BadSetting(
                "{path}: the caption in line {line} has {n} characters; at most {longest} are allowed", **values
            )
        if not text:
            found.empty.append(line)
            continue
        found.by_file.setdefault(file.replace("\\", "/").removeprefix("./"), (line, []))[1].append(text)
    return found


def _is_inside(root: Path, file: str) -> bool:
    """Return whether a name refers to a file below a folder."""
    plain = os.path.normpath(file)
    leads_out = os.path.isabs(plain) or plain.split(os.sep)[0] == os.pardir or "\0" in file
    return not leads_out and os.path.isfile(root / plain)
