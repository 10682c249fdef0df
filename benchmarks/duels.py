"""Duels between two models: are they right, how often do they favor one of two equal models, and how many clicks do
they save? What share of thresholds keeps its false-match rate?

    python -m benchmarks.duels [--replays 100]

- **Duels**: two models of queries whose relevant document is known answer a draw of 5,000 queries. A person who knows
  it clicks, until one model is called better. It should be the better one in at least 95 of 100 replays, after a
  median of at most 40 clicks. The peer judges both first answers to random queries by the same test, also where both
  models give the same answer; it should need at least 400.
- **Equal**: the same with models of equal quality, until 400 clicks. One should be called better in at most 5 of 100.
- **Threshold**: a threshold is chosen on 300 queries at a false-match rate of at most 5 %. On 20,000 queries its rate
  should be at most 5 % in at least 95 of 100 draws.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from contrastive_core.base.betting import log_capital
from contrastive_core.ops.partner_ranks import unit_rows

RIGHT, CLICKS, LABELS, FALSE, ALPHA = 0.95, 40, 400, 0.05, 0.05
POOL, DOCUMENTS, WIDTH, QUERIES, PATIENCE = 20_000, 2000, 24, 5000, 400
SHARED = 0.9  # noise of a query, for both models
PAIRS = {"one weaker": (0.12, 0.3), "equal": (0.2, 0.2)}  # noise of each model's own


@dataclass(frozen=True)
class Pool:
    """First answers of two models to many queries: whether each is right, and whether they are the same."""

    right: np.ndarray  # (2, POOL)
    differ: np.ndarray  # (POOL)


def pool(rng: np.random.Generator, noise: tuple[float, float]) -> Pool:
    """Let two models answer queries near known documents."""
    documents = unit_rows(rng.normal(size=(DOCUMENTS, WIDTH)).astype(np.float32))
    own = rng.integers(0, DOCUMENTS, POOL)
    query = documents[own] + SHARED / np.sqrt(WIDTH) * rng.normal(size=(POOL, WIDTH))
    answers = []
    for own_noise in noise:
        seen = query + own_noise / np.sqrt(WIDTH) * rng.normal(size=query.shape)
        answers.append((seen.astype(np.float32) @ documents.T).argmax(1))
    return Pool(np.stack(answers) == own, answers[0] != answers[1])


def replay(of: Pool, rng: np.random.Generator) -> tuple[int, int, int]:
    """Return which model is called better (1, −1, 0 for neither), the clicks, and the queries that were reached."""
    counts, clicks, values = np.zeros(3), 0, np.array([-1.0, 0.0, 1.0])
    order = rng.choice(POOL, QUERIES, replace=False)
    for reached, query in enumerate(order, 1):
        score = int(of.right[0, query]) - int(of.right[1, query])
        counts[1 + score] += 1
        clicks += bool(of.differ[query])
        if score and log_capital(values, counts, 0, -1, 1) >= -np.log(ALPHA):
            return int(np.sign(counts[2] - counts[0])), clicks, reached
        if clicks == PATIENCE:
            break
    return 0, clicks, reached
