"""Duels between two models: is the better one named, how often is one of two equal models, and how many clicks are
saved? Does the threshold of a match keep its false-match rate?

    python -m benchmarks.duels [--replays 100]

- **Duels**: two models answer a draw of 5,000 queries whose relevant document is known. A person who knows it clicks
  until one model is called better. It should be the better one in at least 95 of 100 replays, after a median of at most
  40 clicks. The peer judges the first answers to random queries by the same test; it should need at least 400 labels.
  The ratio depends on the share of queries to which both give different answers. So other pairs follow, with no goal.
- **Equal**: two models of equal quality, until 400 clicks. One should be called better in at most 5 of 100 replays.
- **Example**: the two models of `contrastive-lab example questions`, by its judgments, on 480 queries with repetition.
- **Threshold**: chosen on 300 queries for a false-match rate of at most 5 %. On 40,000 queries the rate should be at
  most 5 % in at least 95 of 100 draws, with one pair per query that is no match, and with eight that are alike.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from contrastive_core.base.score import log_capital
from contrastive_core.compare.match_threshold import JudgedPairs, find_threshold
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.samples.duels import Duels
from contrastive_core.spaces import example_questions, file_formats
from contrastive_core.spaces.attached_files import read_qrels

RIGHT, CLICKS, LABELS, FALSE, ALPHA, RATE = 0.95, 40, 400, 0.05, 0.05, 0.05
POOL, DOCUMENTS, WIDTH, QUERIES, PATIENCE = 20_000, 2000, 24, 5000, 400
ONE, EQUAL, EXAMPLE = "one weaker", "equal", "example"
PAIRS = {  # noise of a query, for both models, and of each model
    ONE: (0.8, (0.1, 0.25)),
    "one much weaker": (0.9, (0.1, 0.3)),
    "hard queries": (1.1, (0.1, 0.3)),
    EQUAL: (0.9, (0.25, 0.25)),
}


@dataclass(frozen=True)
class Pool:
    """First answers of two models to many queries: whether each is right (2, n), and whether they differ (n)."""

    right: np.ndarray
    differ: np.ndarray
    queries: int  # of a draw


def simulated(rng: np.random.Generator, shared: float, noise: tuple[float, float]) -> Pool:
    """Let two models answer queries near known documents."""
    documents = unit_rows(rng.normal(size=(DOCUMENTS, WIDTH)).astype(np.float32))
    own = rng.integers(0, DOCUMENTS, POOL)
    query = documents[own] + shared / np.sqrt(WIDTH) * rng.normal(size=(POOL, WIDTH))
    answers = []
    for own_noise in noise:
        seen = query + own_noise / np.sqrt(WIDTH) * rng.normal(size=query.shape)
        answers.append((seen.astype(np.float32) @ documents.T).argmax(1))
    return Pool(np.stack(answers) == own, answers[0] != answers[1], QUERIES)


def of_example() -> Pool:
    """Read the first answers of the example's models. A is the better one."""
    with TemporaryDirectory() as folder:
        files = example_questions.write(Path(folder))[::-1]
        duels = Duels.of([file.stem for file in files], [file_formats.read(file) for file in files])
        judged = read_qrels(Path(folder) / example_questions.JUDGMENTS)
    ids = [name.rpartition(":")[2] for name in duels.rows.ids]
    right = [
        [judged[ids[q]].get(ids[a], 0) > 0 for q, a in zip(duels.queries, of, strict=True)] for of in duels.answers
    ]
    return Pool(np.array(right), duels.differ, len(duels.queries))


def replay(of: Pool, rng: np.random.Generator) -> tuple[int, int, int]:
    """Return which model is called better (1, −1, 0 for neither), the clicks, and the queries that were reached."""
    counts, clicks, values = np.zeros(3), 0, np.array([-1.0, 0.0, 1.0])
    for reached, query in enumerate(rng.integers(0, len(of.differ), of.queries), 1):
        score = int(of.right[0, query]) - int(of.right[1, query])
        counts[1 + score] += 1
        clicks += bool(of.differ[query])
        if score and log_capital(values, counts, 0, -1, 1) >= -np.log(ALPHA):
            return int(np.sign(counts[2] - counts[0])), clicks, reached
        if clicks == PATIENCE:
            break
    return 0, clicks, reached


def duels(replays: int) -> None:
    """Print how often duels are right, and how many clicks and labels they take."""
    rng = np.random.default_rng(0)
    pools = {name: simulated(rng, *setting) for name, setting in PAIRS.items()} | {EXAMPLE: of_example()}
    for name, pool in pools.items():
        called, clicks, labels = np.array([replay(pool, rng) for _ in range(replays)]).T
        apart = 100 * (pool.right[0].mean() - pool.right[1].mean())
        right, wrong = (called > 0).mean(), (called < 0).mean()
        text = f"{name}, {apart:.1f} points apart, first answers differ on {100 * pool.differ.mean():.1f} %: "
        if name == EQUAL:
            kept = "ok" if right + wrong <= FALSE else "MISSED"
            print(f"{text}called better {right + wrong:.2f}  {kept}")
            continue
        n_clicks, n_labels = np.median(clicks), np.median(labels)
        is_kept = right >= RIGHT and n_clicks <= CLICKS and n_labels >= LABELS
        kept = "" if name != ONE else "  ok" if is_kept else "  MISSED"
        print(
            f"{text}right {right:.2f}, wrong {wrong:.2f}, median {n_clicks:.0f} clicks and {n_labels:.0f} labels, "
            f"ratio {n_labels / n_clicks:.1f}{kept}"
        )


def drawn(rng: np.random.Generator, queries: int, per_query: int) -> JudgedPairs:
    """Return pairs that are no match, which are alike for a query, and as many matches."""
    query = np.tile(np.repeat(np.arange(queries), per_query), 2)
    is_match = np.arange(len(query)) >= len(query) // 2
    similarity = np.tanh(0.3 * rng.normal(size=queries)[query] + 0.2 * rng.normal(size=len(query)) + 0.5 * is_match)
    return JudgedPairs(query=query, similarity=similarity, is_match=is_match, kind="")


def thresholds(draws: int) -> None:
    """Print how often a threshold keeps its rate."""
    rng = np.random.default_rng(0)
    for per_query in (1, 8):
        of_all = drawn(rng, 40_000, per_query)
        others = of_all.similarity[~of_all.is_match]
        found = [find_threshold(drawn(rng, 300, per_query), RATE).threshold for _ in range(draws)]
        true = np.array([(others >= (np.inf if one is None else one)).mean() for one in found])
        share = (true <= RATE).mean()
        print(
            f"threshold, {per_query} per query: rate kept in {share:.3f} of draws, median rate {np.median(true):.3f}  "
            f"{'ok' if share >= RIGHT else 'MISSED'}"
        )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--replays", type=int, default=100)
    args = options.parse_args()
    duels(args.replays)
    thresholds(5 * args.replays)


if __name__ == "__main__":
    main()
