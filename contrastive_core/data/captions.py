"""Captions of images: their words as tokens, and their sources, the factors of `shapes` and `captions.csv` in a folder.

`captions.csv` has the columns `file`, a path below the folder, and `caption`; a file may have several lines. Images
without a caption and empty captions are left out, with a note."""

import dataclasses
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, message, printable
from contrastive_core.base.storage import read_table
from contrastive_core.data.dataset import Captions, Dataset
from contrastive_core.data.image_listings import FILE, FOR_TEST
from contrastive_core.data.named_sets import CLASSES, TEXTURES

PADDING, UNKNOWN = 0, 1  # tokens without a word
CAPTIONS_FILE = "captions.csv"  # in a folder of images
SENTENCE_TOWER = "sentence-transformers:"  # prefix of a text tower's folder
LENGTH = 32  # words of a caption that a text tower reads
WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Vocabulary:
    """Lower-case words; the token of `words[i]` is i + 2."""

    words: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.words) + 2

    def encode(self, texts: Sequence[str], length: int) -> np.ndarray:
        """Return tokens (n, length) int64: the first words of each text, padded with PADDING."""
        numbers = {word: i for i, word in enumerate(self.words, 2)}
        tokens = np.full((len(texts), length), PADDING, np.int64)
        for row, text in zip(tokens, texts, strict=True):
            known = [numbers.get(word, UNKNOWN) for word in split_words(text)[:length]]
            row[: len(known)] = known
        return tokens


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks, in lower case."""
    return WORD.findall(text.lower())


def build_vocabulary(texts: Iterable[str], size: int = 2000) -> Vocabulary:
    """Return the `size` most frequent words of the texts; ties in alphabetical order."""
    counts = Counter(word for text in texts for word in split_words(text))
    words = sorted(counts, key=lambda word: (-counts[word], word))[:size]
    return Vocabulary(tuple(words))


# --- sources of captions ---


CAPTION = "caption"
LONGEST = 1000  # characters of a caption
EMPTY = N_("Empty captions in captions.csv are left out: {n}, the first in line {first}.")
LONG = N_("{n} captions in captions.csv are long: the text tower reads their first {most} words.")
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
    """Content of a `captions.csv`: the first line and the captions of each file, and remarks on empty captions and on
    captions that a text tower cuts off."""

    path: Path
    by_file: dict[str, tuple[int, list[str]]]
    remarks: tuple[str, ...]


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
    return dataclasses.replace(dataset, captions=captions, remarks=(*dataset.remarks, *file.remarks))


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
            continue
        plain = os.path.normpath(name)
        leads_out = os.path.isabs(plain) or plain.split(os.sep)[0] == os.pardir or "\0" in name
        if leads_out or not os.path.isfile(file.path.parent / plain):  # images of the other split are inside
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
    by_file: dict[str, tuple[int, list[str]]] = {}
    empty, n_long = list[int](), 0
    for line, row in enumerate(read_table(path, FILE, CAPTION)[1], 2):
        file, text = ((row[k] or "").strip() for k in (FILE, CAPTION))
        if len(text) > LONGEST:
            values = {"path": printable(path), "line": f"{line:,}", "n": f"{len(text):,}", "longest": f"{LONGEST:,}"}
            raise BadSetting(
                "{path}: the caption in line {line} has {n} characters; at most {longest} are allowed", **values
            )
        if text:
            by_file.setdefault(file.replace("\\", "/").removeprefix("./"), (line, []))[1].append(text)
            n_long += len(split_words(text)) > LENGTH
        else:
            empty.append(line)
    remarks = [message(EMPTY, n=f"{len(empty):,}", first=f"{empty[0]:,}")] if empty else []
    remarks += [message(LONG, n=f"{n_long:,}", most=LENGTH)] if n_long else []
    return CaptionFile(path, by_file, tuple(remarks))
