"""Mismatched pairs planted in captions: does the list of `pairs` and the Samples page name them first?

    python -m benchmarks.mismatched_pairs [--seeds 11 12 13] [--epochs 10] [--images 2000]

`clip` is trained on one thread on images of `shapes` with 5 % of their captions swapped, as a user has them: in a
folder with captions.csv, wrong ones included. Its own training pairs are ranked ("trained on"). Then wrong captions are
planted among 2,000 pairs that it has not seen: swapped at random ("new"); of the same class ("same class"), which
differ in a color, a size or a texture only; captions of two words ("short"), which fit many images; 20 % swapped
("20 %"). The ranking's weights were tuned on sets like the first, with other seeds, and on none of the others.

Beside it: the cosine of a pair alone (the CLIP score: Hessel et al. 2021, arXiv 2104.08718), the rank of the own image,
and LEMoN (Zhang et al. 2024, arXiv 2407.18941) as its authors' code computes it, with the values that they fix where
none can be tuned (github.com/MLforHealth/LEMoN, notebooks/hparam_drop.ipynb). Average precision against what was
planted, with a 95 % bootstrap interval over pairs; a random list has the planted share. Then how far the list is ahead
of each other ranking, in the same resamples.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.metrics import average_precision_score

from benchmarks._training import trained
from contrastive_core.base.storage import data_home
from contrastive_core.compare.embed import embed_run, load_model
from contrastive_core.data import datasets
from contrastive_core.data.captions import CAPTIONS_FILE, HUE_ENDS, HUES, SIZES, SURFACES, captions_of
from contrastive_core.data.dataset import Dataset
from contrastive_core.data.overrides import take
from contrastive_core.runs.run import Run
from contrastive_core.samples.tower_pairs import TowerPairs, find_tower_pairs
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import TEXT, Towers, joined, towers_of

TRAINED = "trained on"
SETS = {TRAINED: 0.05, "new": 0.05, "same class": 0.05, "short": 0.05, "20 %": 0.2}
GOAL = 0.9  # of the first set
RESAMPLES = 300
K, WEIGHT, NEAR, FIT = 30, 5.0, 0.1, 5.0  # LEMoN: knn_k, β = γ, τ₁, τ₂ of hparam_drop.ipynb
RANKINGS = ("this list", "cosine (CLIP score)", "rank of the own image", "LEMoN")


def texts_of(dataset: Dataset, name: str) -> tuple[list[str], np.ndarray, list[frozenset[str]]]:
    """Texts, the image of each, and the facts that each names."""
    captions = captions_of(dataset)
    texts, image = list(captions.texts), captions.image
    if name == "short":
        hues = np.searchsorted(HUE_ENDS, dataset.factors["hue"]) % len(HUES)
        image = np.arange(len(dataset))
        texts = [f"{HUES[hues[i]]} {dataset.classes[dataset.labels[i]]}" for i in image]
    by_image = {int(i): frozenset(texts[k].split()) for k, i in enumerate(image)}
    facts = set(HUES) | {*SIZES, *SURFACES.values()}
    facts |= set(dataset.classes)
    return texts, image, [frozenset(by_image[int(i)] & facts) for i in image]


def plant(dataset: Dataset, name: str, seed: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts with some of another image, the image of each, and which (m) are wrong."""
    texts, image, facts = texts_of(dataset, name)
    rng, wrong = np.random.default_rng(seed), np.zeros(len(texts), bool)
    labels, new = dataset.labels[image], list(texts)
    for row in rng.permutation(len(texts))[: round(SETS[name] * len(texts))]:
        others = np.flatnonzero(labels == labels[row]) if name == "same class" else np.arange(len(texts))
        for other in rng.permutation(others)[:50]:
            if facts[other] != facts[row] and image[other] != image[row]:
                new[row], wrong[row] = texts[other], True
                break
    return new, image, wrong


def folder_of(seed: int, most: int, place: Path) -> set[tuple[str, str]]:
    """Write a folder of images with captions.csv, some wrong; return file and text of each wrong caption."""
    train, test = datasets.load("shapes", "train"), datasets.load("shapes", "test")
    train = take(train, np.random.default_rng(seed).permutation(len(train))[:most])
    lines, bad = [], set()
    for dataset in (train, test):
        if dataset is train:
            texts, image, wrong = plant(dataset, TRAINED, seed)
        else:
            texts, image, _ = texts_of(dataset, TRAINED)
            wrong = np.zeros(len(texts), bool)
        (place / dataset.split).mkdir(parents=True)
        for i in range(len(dataset)):
            picture = np.asarray(dataset.images[i]).transpose(1, 2, 0)
            Image.fromarray(picture).save(place / dataset.split / f"{i:05}.png")
        lines += [(f"{dataset.split}/{image[k]:05}.png", text) for k, text in enumerate(texts)]
        bad |= {(f"{image[k]:05}.png", texts[k]) for k in np.flatnonzero(wrong)}
    with (place / CAPTIONS_FILE).open("w", newline="") as file:
        csv.writer(file).writerows([("file", "caption"), *lines])
    return bad


def scores_of(towers: Towers) -> tuple[TowerPairs, dict[str, np.ndarray]]:
    """Every ranking's suspicion of each pair."""
    found = find_tower_pairs(towers)
    scores = (found.mismatch, -found.similarity, found.rank.astype(float), lemon(towers, found))
    return found, dict(zip(RANKINGS, scores, strict=True))


def lemon(towers: Towers, found: TowerPairs) -> np.ndarray:
    """LEMoN's score of each pair: its distance, and how far each side is from the partners of the other's neighbors."""
    unit = towers.rows.features / towers.rows.lengths[:, None]
    q, p = unit[found.query], unit[found.partner]
    own = 1 - (q * p).sum(1)  # (n)
    return own + WEIGHT * (_far(q, p, own) + _far(p, q, own))


def _far(x: np.ndarray, y: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Mean weighted distance (n) of each y to the y of its K nearest x."""
    result = np.empty(len(x))
    for start in range(0, len(x), 1000):
        part = slice(start, start + 1000)
        d = 1 - x[part] @ x.T
        d[np.arange(len(d)), np.arange(len(x))[part]] = np.inf
        at = np.argpartition(d, K, 1)[:, :K]
        near = np.take_along_axis(d, at, 1)
        apart = 1 - np.einsum("rd,rkd->rk", y[part], y[at])
        distance = near - 1  # as theirs: the negative cosine
        result[part] = (apart * np.exp(-NEAR * distance) * np.exp(-FIT * own[at])).mean(1)
    return result


def new_pairs(run: Run, name: str, seed: int) -> tuple[Towers, np.ndarray]:
    """The test images with captions that the run has not seen, and which (m) are wrong."""
    texts, image, wrong = plant(datasets.load("shapes", "test"), name, seed)
    images = embed_run(run, "test", "z", "cpu")
    with torch.no_grad():
        z = load_model(run, None, "cpu").encode_texts(texts).numpy()
    towers = towers_of(joined(images, EmbeddingSet(z), ("image", "caption"), np.arange(len(images)), image))
    assert towers is not None
    return towers, wrong


def trained_pairs(run: Run, bad: set[tuple[str, str]]) -> tuple[Towers, np.ndarray]:
    """The run's own training pairs, and which (m) are wrong."""
    rows = embed_run(run, "train", "towers", "cpu")
    towers = towers_of(rows)
    assert towers is not None
    files = [Path(name.split("#")[0]).name for name in rows.ids]
    return towers, np.array([(files[i], str(rows.columns[TEXT][i])) in bad for i in towers.b])


def measured(seed: int, most: int, epochs: int) -> dict[str, dict[str, tuple[float, np.ndarray]]]:
    """Of each set and ranking, average precision and that of resamples of the pairs."""
    place = data_home() / "mismatched" / f"{seed}-{most}"
    shutil.rmtree(place, ignore_errors=True)
    bad = folder_of(seed, most, place)
    data = ("--dataset", f"folder:{place}", "--epochs", str(epochs), "--seed", str(seed))
    run = trained(f"mismatched-{seed}-{most}-{epochs}", "--method", "clip", *data)
    results = {}
    for name in SETS:
        towers, wrong = trained_pairs(run, bad) if name == TRAINED else new_pairs(run, name, seed)
        results[name] = precisions(towers, wrong)
    return results


def precisions(towers: Towers, wrong: np.ndarray) -> dict[str, tuple[float, np.ndarray]]:
    found, scores = scores_of(towers)
    truth = wrong[np.searchsorted(towers.b, found.query)]
    draws = np.random.default_rng(0).integers(len(truth), size=(RESAMPLES, len(truth)))
    results = {}
    for ranking, score in scores.items():
        some = np.array([average_precision_score(truth[d], score[d]) for d in draws])
        results[ranking] = (float(average_precision_score(truth, score)), some)
    return results


def main() -> None:
    """Train, rank and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--images", type=int, default=2000)
    args = options.parse_args()
    by_seed = [measured(seed, args.images, args.epochs) for seed in args.seeds]
    for name in SETS:
        for ranking in RANKINGS:
            values = [results[name][ranking] for results in by_seed]
            mean, draws = np.mean([v for v, _ in values]), np.mean([some for _, some in values], 0)
            low, high = np.percentile(draws, (2.5, 97.5))
            each = ", ".join(f"{v:.3f}" for v, _ in values)
            print(f"{name:<12}{ranking:<24}{mean:.3f} [{low:.3f}, {high:.3f}]  ({each})", flush=True)
        for peer in RANKINGS[1:]:
            ahead = np.mean([results[name][RANKINGS[0]][1] - results[name][peer][1] for results in by_seed], 0)
            low, high = np.percentile(ahead, (2.5, 97.5))
            print(f"{name:<12}ahead of {peer:<24}{ahead.mean():+.3f} [{low:+.3f}, {high:+.3f}]", flush=True)


if __name__ == "__main__":
    main()
