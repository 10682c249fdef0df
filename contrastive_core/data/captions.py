"""Captions of a split's images, one or more per image, and their tokens."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

PADDING, UNKNOWN = 0, 1  # tokens without a word
CAPTIONS_FILE = "captions.csv"  # in a folder of images
SENTENCE_TOWER = "sentence-transformers:"  # prefix of a text tower's folder
LENGTH = 32  # words of a caption that a text tower reads
WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, eq=False)
class Captions:
    """Captions: `texts` (m), and `image` (m) int64, the row of each text's image, sorted."""

    texts: tuple[str, ...]
    image: np.ndarray

    @property
    def digest(self) -> str:
        """SHA-256 of the texts and their images."""
        parts = (self.image.astype("<i8").tobytes(), *(f"{text}\n".encode() for text in self.texts))
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def names(self, images: Sequence[str]) -> list[str]:
        """Return the id of each caption: the id of its image and its number among that image's captions, from 1."""
        number = np.arange(len(self.image)) - np.searchsorted(self.image, self.image) + 1
        return [f"{images[i]}#{k}" for i, k in zip(self.image.tolist(), number.tolist(), strict=True)]

    def at(self, image: np.ndarray, keep: Sequence[int]) -> "Captions":
        """Return the captions at the indices `keep`, assigned to the images in `image` (m)."""
        order = sorted(keep, key=lambda k: int(image[k]))
        return Captions(tuple(self.texts[k] for k in order), image[np.asarray(order, np.int64)])

    def take(self, keep: np.ndarray) -> "Captions":
        """Return the captions of the images `keep`, in that order."""
        first, last = self.bounds(keep)
        rows = [range(i, j) for i, j in zip(first, last, strict=True)]
        texts = tuple(self.texts[k] for each in rows for k in each)
        return Captions(texts, np.repeat(np.arange(len(keep)), last - first))

    def bounds(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the index of each image's first caption, and the index after its last."""
        return np.searchsorted(self.image, images, "left"), np.searchsorted(self.image, images, "right")

    def at_most(self, count: int) -> "Captions":
        """Return at most `count` captions of each image, the first ones."""
        keep = np.arange(len(self.image)) - np.searchsorted(self.image, self.image) < count
        return Captions(tuple(text for text, kept in zip(self.texts, keep, strict=True) if kept), self.image[keep])


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
