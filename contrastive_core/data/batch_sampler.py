"""Which images make a batch: the order of an epoch as a pure function of seed and epoch.

An epoch's plan is a list of index arrays. A resumed run makes the same plan again and goes on in its middle, and every
process of a distributed run makes it and takes its share: there is no sampler state to save.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from contrastive_core.errors import BadSetting

SMALLEST = 2  # a batch of one has nothing to compare


def plan(kind: str, labels: np.ndarray, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Index arrays of one epoch's batches, equal for equal arguments.

    Args:
        kind: "shuffled": a permutation cut into batches, a last one below half a batch left out;
            "class_balanced": per batch √batch_size classes (at least 2) with equally many images;
            "n_pair": per batch one pair of images from each of many classes;
            "lifted": groups of four, a random pair of one class and two random images, of which
            the method keeps the hardest negatives (Song et al. 2016, arXiv 1511.06452).
        labels: (n), −1 for none; only the balanced kinds read it.
    Raises: ValueError for an unknown kind, or for labels that the kind cannot use.
    """
    if kind not in PLANS:
        raise BadSetting("unknown kind of batch {kind}; known: {plans}", kind=f"{kind!r}", plans=", ".join(PLANS))
    rng = np.random.default_rng([seed, epoch])
    return PLANS[kind](labels, min(batch_size, len(labels)), rng)


def _shuffled(labels: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    order = rng.permutation(len(labels))
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    if len(batches) > 1 and len(batches[-1]) < max(SMALLEST, size // 2):
        batches.pop()
    return batches


def _class_balanced(labels: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    decks = _decks(labels, rng)
    classes = min(len(decks), max(2, round(size**0.5)))
    return _class_batches(decks, classes, max(2, size // classes), len(labels) // size, rng)


def _n_pair(labels: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    decks = _decks(labels, rng)
    classes = min(len(decks), max(2, size // 2))
    return _class_batches(decks, classes, 2, len(labels) // (2 * classes), rng)


def _lifted_batches(labels: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    decks = _decks(labels, rng)
    usable = np.flatnonzero(np.isin(labels, list(decks)))
    index_batches = []
    for _ in range(max(1, len(labels) // size)):
        count = max(1, min(size, len(usable)) // 4)
        drawn = rng.choice(labels[usable], count)  # a class as often as it has images
        deck_counts = [(decks[c], 2 * k) for c, k in zip(*np.unique(drawn, return_counts=True), strict=True)]
        pairs = np.concatenate([deck.draw(min(int(k), len(deck.items) // 2 * 2)) for deck, k in deck_counts])
        others = rng.choice(np.setdiff1d(usable, pairs), len(pairs), replace=False)
        index_batches.append(np.hstack([pairs.reshape(-1, 2), others.reshape(-1, 2)]).ravel())
    return index_batches


def _class_batches(
    decks: dict[int, _Deck], classes: int, images: int, batches: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Batches of `classes` × `images`: every class and image is used up before it comes again."""
    turn = _Deck(np.array(list(decks)), rng)
    chosen = (turn.draw(classes) for _ in range(max(1, batches)))
    return [np.concatenate([decks[c].draw(min(images, len(decks[c].items))) for c in some]) for some in chosen]


class _Deck:
    """Draws distinct items without replacement and shuffles again when too few are left."""

    def __init__(self, items: np.ndarray, rng: np.random.Generator) -> None:
        self.items, self.rng = items, rng
        self.remaining = rng.permutation(items)

    def draw(self, k: int) -> np.ndarray:
        drawn, self.remaining = self.remaining[:k], self.remaining[k:]
        if len(drawn) < k:
            fresh = self.rng.permutation(np.setdiff1d(self.items, drawn))
            need = k - len(drawn)
            drawn, self.remaining = np.concatenate([drawn, fresh[:need]]), fresh[need:]
        return drawn


def _decks(labels: np.ndarray, rng: np.random.Generator) -> dict[int, _Deck]:
    """The images of each class that has at least two."""
    classes, counts = np.unique(labels[labels >= 0], return_counts=True)
    usable = classes[counts >= 2]
    if len(usable) < 2:
        values = {"least": 2, "usable": len(usable)}
        raise BadSetting("balanced batches need two classes with {least} images each; there are {usable}", **values)
    return {int(c): _Deck(np.flatnonzero(labels == c), rng) for c in usable}


PLANS: dict[str, Callable[[np.ndarray, int, np.random.Generator], list[np.ndarray]]] = {
    "shuffled": _shuffled,
    "class_balanced": _class_balanced,
    "n_pair": _n_pair,
    "lifted": _lifted_batches,
}
