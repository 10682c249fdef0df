"""Scores without any training on the images that were set aside: raw pixels, and an untrained encoder."""

from __future__ import annotations

import dataclasses

import numpy as np

from contrastive_core.advice.first_look import MOST, pixels, vote_of
from contrastive_core.data.datasets import Dataset
from contrastive_core.evaluation.embed import untrained_rows
from contrastive_core.messages import N_
from contrastive_core.records.train_config import TrainConfig

SEED = 0


def baselines(dataset: Dataset, rows: np.ndarray, method: str, device: str = "auto") -> dict[str, float]:
    """kNN on the held-out rows (m), by at most `MOST` of the rest: of raw pixels, and of an
    untrained encoder.

    Returns: shares right by name; {} where no held-out image has a label.
    """
    asked = rows[dataset.labels[rows] >= 0]
    rest = np.setdiff1d(np.flatnonzero(dataset.labels >= 0), rows)
    rest = np.sort(np.random.default_rng(SEED).permutation(rest)[:MOST])
    if not len(asked) or not len(rest):
        return {}
    chosen = np.concatenate([asked, rest])
    images, labels = np.asarray(dataset.images[chosen]), dataset.labels[chosen]
    part = dataclasses.replace(dataset, images=images, labels=labels, ids=[dataset.ids[i] for i in chosen], factors={})
    untrained = untrained_rows(TrainConfig(method=method, dataset=dataset.name), part, device)
    m, found = len(asked), {}
    for name, x in ((N_("raw pixels"), pixels(images)), (N_("an untrained encoder"), untrained)):
        found[name] = float((vote_of(x[:m], x[m:], labels[m:], device) == labels[:m]).mean())
    return found
