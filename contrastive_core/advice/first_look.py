"""What a data set shows before any training: sizes, copies, classes, what pixels know of them. Everything is read
from at most `MOST` training images; of the test images only the pixels are compared, to find copies. What follows
from it is in suggestions.py."""

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import adaptive_avg_pool2d

from contrastive_core import losses, methods
from contrastive_core.advice.fitting_methods import fitting_methods
from contrastive_core.advice.held_out import FEWEST
from contrastive_core.advice.suggestions import USUAL_BATCH, Facts, Suggestion, suggestions
from contrastive_core.data import datasets
from contrastive_core.data.datasets import Dataset
from contrastive_core.evaluation.embed import untrained_rows
from contrastive_core.evaluation.paired_tests import difference
from contrastive_core.messages import N_, message
from contrastive_core.metrics.knn import default_k, vote
from contrastive_core.ops.neighbors import nearest
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records.recipe import Recipe
from contrastive_core.records.score import wilson
from contrastive_core.records.train_config import TrainConfig
from contrastive_core.training.defaults import usual_settings

MOST = 4000  # training images that are looked at
ASKED = 1000  # of them, those that the others vote on
SMALL = 16  # pixels a side to which images are brought for comparing pixels
ALIKE = 0.995  # cosine of centered pixels above which two images count as nearly the same
SEED = 0


@dataclass(frozen=True)
class Look:
    """Facts by name, as plain values, and what follows from them."""

    dataset: str
    facts: Facts
    suggestions: tuple[Suggestion, ...]
    methods: tuple[str, ...] = ()  # that can be tried on it

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def look(
    name: str,
    root: str | None = None,
    method: str = "simclr",
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> Look:
    """A first look at a data set's training images. Raises ValueError for what cannot be loaded."""
    on_progress(N_("reading images"), None)
    train, test = (datasets.load(name, split, root) for split in ("train", "test"))
    facts = _sizes(train, test)
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(train))[:MOST])
    images = np.asarray(train.images[chosen])
    rows, labels = pixels(images), train.labels[chosen]
    on_progress(N_("looking for copies"), 0.2)
    facts |= _copies(train, test, rows, device)
    facts["gray"] = images.shape[1] == 1 or bool((images[:, :1] == images).all())
    if len(np.unique(labels[labels >= 0])) > 1:
        on_progress(N_("comparing classes"), 0.5)
        facts |= _by_class(images, rows, labels, device)
        asked, others = _parts(labels)
        h = _untrained(train, chosen, method, device)
        facts["random_encoder"] = float((vote_of(h[asked], h[others], labels[others], device) == labels[asked]).mean())
    on_progress(N_("conclusions"), 0.9)
    card = methods.get(method).card
    about = {"needs_labels": card.needs_labels, "has_temperature": "temperature" in losses.knobs(card.default_loss)}
    defaults = {"recipe": Recipe(), "batch_size": USUAL_BATCH, **about, **usual_settings(method, train)}
    facts["batch_size"] = defaults["batch_size"]
    fitting = tuple(fitting_methods(train)[0])
    return Look(name, facts, tuple(suggestions(name, facts, defaults)), fitting)


def in_words(facts: Facts) -> str:
    """The facts in a sentence or two; in one more where the adviser cannot try anything on them."""
    few = message("Too few images to try settings: at least {fewest} training images are needed.", fewest=FEWEST)
    return f"{_seen(facts)} {few}" if facts["train"] < FEWEST else _seen(facts)


def _seen(facts: Facts) -> str:
    color = N_("in gray") if facts["gray"] else N_("in color")
    color = message("of {c} channels", c=c) if (c := facts["channels"]) not in (1, 3) else color
    values = {"train": f"{facts['train']:,}", "test": f"{facts['test']:,}", "color": color}
    values |= {"height": str(facts["height"]), "width": str(facts["width"])}
    text = message("{train} training and {test} test images of {height} × {width} pixels, {color}", **values)
    if facts["classes"] < 2 or "pixels_knn" not in facts:
        return message("{text}, without classes.", text=text)
    sizes = f"{facts['smallest']:,}"
    if facts["largest"] > facts["smallest"]:
        sizes += message(" to {largest}", largest=f"{facts['largest']:,}")
    known = {"pixels_knn": facts["pixels_knn"], "random_encoder": facts["random_encoder"], "chance": facts["chance"]}
    shares = {name: f"{100 * share:.1f}" for name, share in known.items()}
    cosines = {"same": f"{facts['same_class_cosine']:.2f}", "other": f"{facts['other_class_cosine']:.2f}"}
    return message(
        "{text}; {classes} classes of {sizes}. kNN accuracy on {asked} of the training images, by the vote of others, "
        "is {pixels_knn} % on pixels and {random_encoder} % with an untrained encoder; the largest class has {chance} "
        "%. The mean cosine of centered pixels is {same} within "
        "a class and {other} between classes.",
        text=text,
        classes=facts["classes"],
        sizes=sizes,
        asked=f"{facts['asked']:,}",
        **shares,
        **cosines,
    )


def baselines(dataset: Dataset, rows: np.ndarray, method: str, device: str = "auto") -> dict[str, float]:
    """kNN on the held-out rows (m), by at most `MOST` of the rest: of raw pixels, and of an untrained encoder.
    Returns: shares right by name; {} where no held-out image has a label."""
    asked = rows[dataset.labels[rows] >= 0]
    rest = np.setdiff1d(np.flatnonzero(dataset.labels >= 0), rows)
    rest = np.sort(np.random.default_rng(SEED).permutation(rest)[:MOST])
    if not len(asked) or not len(rest):
        return {}
    chosen, m = np.concatenate([asked, rest]), len(asked)
    labels = dataset.labels[chosen]
    spaces = {
        N_("raw pixels"): pixels(np.asarray(dataset.images[chosen])),
        N_("an untrained encoder"): _untrained(dataset, chosen, method, device),
    }
    return {name: float((vote_of(x[:m], x[m:], labels[m:], device) == labels[:m]).mean()) for name, x in spaces.items()}


def _sizes(train: Dataset, test: Dataset) -> Facts:
    _, c, h, w = train.images.shape
    labels = train.labels[train.labels >= 0]
    counts = np.bincount(labels, minlength=len(train.classes)) if len(labels) else np.zeros(0, int)
    share = counts[counts > 0] / max(1, counts.sum())
    facts: Facts = {"train": len(train), "test": len(test), "channels": c, "height": h, "width": w}
    facts |= {"labeled": len(labels), "classes": int((counts > 0).sum()), "left_out": train.left_out}
    if len(share) > 1:
        facts |= {
            "smallest_class": train.classes[int(np.argmin(counts))],
            "smallest": int(counts.min()),
            "largest_class": train.classes[int(np.argmax(counts))],
            "largest": int(counts.max()),
            "same_class_negatives": float((share**2).sum()),
        }
    return facts


def pixels(images: np.ndarray) -> np.ndarray:
    """Images as centered rows (n, p) of at most `SMALL` × `SMALL` pixels each channel."""
    x = torch.from_numpy(np.ascontiguousarray(images)).float()
    if max(x.shape[2:]) > SMALL:
        x = adaptive_avg_pool2d(x, SMALL)
    x = x.flatten(1)
    return (x - x.mean(1, keepdim=True)).numpy()  # type: ignore[no-any-return]


def _copies(train: Dataset, test: Dataset, rows: np.ndarray, device: str) -> Facts:
    """How often an image stands twice: equal to the last bit, or nearly so across the split."""
    first = np.random.default_rng(SEED).permutation(len(test))[:ASKED]
    asked = pixels(np.asarray(test.images[np.sort(first)]))
    asked = asked[asked.any(1)]
    is_alike = nearest(asked, rows, 1, device=device).score[:, 0] > ALIKE if len(asked) and rows.any() else np.array([])
    in_train = [_digest(x) for x in train.images]
    held = set(in_train)
    return {
        "copies_in_train": len(in_train) - len(held),
        "copies_across": sum(_digest(x) in held for x in test.images),
        "alike_across": int(is_alike.sum()),
        "asked_across": len(asked),
    }


def _digest(image: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=16).digest()


def _by_class(images: np.ndarray, rows: np.ndarray, labels: np.ndarray, device: str) -> Facts:
    """Return the kNN accuracy of pixels, upright and mirrored, and of the mean color alone."""
    asked, others = _parts(labels)

    def right(of: np.ndarray, among: np.ndarray) -> np.ndarray:
        return vote_of(of, among, labels[others], device) == labels[asked]

    upright = right(rows[asked], rows[others])
    mirrored = right(pixels(images[asked][..., ::-1]), rows[others])
    d, interval = difference(upright, mirrored)
    labeled = labels[labels >= 0]
    facts: Facts = {
        "asked": len(asked),
        "pixels_knn": float(upright.mean()),
        "pixels_interval": wilson(int(upright.sum()), len(asked)),
        "mirrored_knn": float(mirrored.mean()),
        "mirroring_costs": (d, *interval),
        "chance": float(np.bincount(labeled).max() / len(labeled)),
        **_likeness(rows[labels >= 0], labeled),
    }
    if images.shape[1] == 3 and (images[:, :1] != images).any():
        color = images.mean((2, 3), dtype=np.float64)  # (n, 3)
        color = (color - color.mean(0)) / (color.std(0) + 1e-9)
        by_color = right(_on_sphere(color[asked]), _on_sphere(color[others]))
        facts |= {"color_knn": float(by_color.mean()), "color_interval": wilson(int(by_color.sum()), len(asked))}
    return facts


def _parts(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labeled rows that are asked about, and those that vote: a fifth and the rest."""
    order = np.random.default_rng(SEED).permutation(np.flatnonzero(labels >= 0))
    count = min(ASKED, max(1, len(order) // 5))
    return order[:count], order[count:]


def _on_sphere(x: np.ndarray) -> np.ndarray:
    """Rows on a sphere on which near rows stay near: cosine neighbors of them are Euclidean ones of x."""
    scaled = x / max(1e-9, 3 * float(np.abs(x).max()))
    last = np.sqrt(np.maximum(0, 1 - (scaled**2).sum(1, keepdims=True)))
    return np.concatenate([scaled, last], 1).astype(np.float32)


def vote_of(asked: np.ndarray, among: np.ndarray, labels: np.ndarray, device: str) -> np.ndarray:
    """The class (m) that the nearest of `among` (n, d), of `labels` (n), give each of `asked` (m, d)."""
    k = min(default_k(len(among)), len(among))
    neighbors = nearest(asked.astype(np.float32), among.astype(np.float32), k, device=device)
    return vote(neighbors, labels, 0.07)


def _likeness(rows: np.ndarray, labels: np.ndarray) -> Facts:
    """Mean cosine of two images of one class, and of two of different ones: of centered pixels."""
    x, n = rows.astype(np.float64), len(rows)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    classes, counts = np.unique(labels, return_counts=True)
    sums = np.stack([x[labels == c].sum(0) for c in classes])
    squares, pairs = float((x**2).sum()), float((counts * (counts - 1)).sum())
    same = float((sums**2).sum()) - squares
    every = float((x.sum(0) ** 2).sum()) - squares
    return {
        "same_class_cosine": same / max(1.0, pairs),
        "other_class_cosine": (every - same) / max(1.0, n * (n - 1) - pairs),
    }


def _untrained(dataset: Dataset, chosen: np.ndarray, method: str, device: str) -> np.ndarray:
    images, ids = np.asarray(dataset.images[chosen]), [dataset.ids[i] for i in chosen]
    part = dataclasses.replace(dataset, images=images, labels=dataset.labels[chosen], ids=ids, factors={})
    return untrained_rows(TrainConfig(method=method, dataset=dataset.name), part, device)
