"""Two models compared by relevance judgments: are claims right, do intervals hold, and how long does a large set take?

    python -m benchmarks.retrieval [--simulations 100] [--documents 100000]

- **Halves**: one model against itself with each query drawn twice, of equal quality. A false "better" in any figure
  should come in at most 6 of 100 comparisons.
- **Coverage**: two models of which one is better. The 95 % interval of each difference should contain the difference
  over 20,000 queries in 93 to 99 % of comparisons.
- **Adapter**: a map from old to new vectors, chosen from three, on other documents and queries each time. The lower
  bound of the recall that it keeps should be at most what it keeps of 20,000 queries in at least 95 of 100 splits.
- **Given negatives**: the share of the planted false negatives of the example "questions and answers" that are among
  the first 2N of the list, for each of its two models. At least 90 % should be.
- **Large**: 100,000 documents and 1,000 queries of 768 numbers by two models, in at most 10 s and 2 GB on two cores.
- **Cost** and **map** at the same size: the curve of compressed vectors, and the adapter with its bound, on the sample
  that the app takes. Each of the three runs in a process of its own, whose peak memory includes the vectors.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base.memory import overlap
from contrastive_core.base.score import difference
from contrastive_core.compare.adapter import judge, nearest
from contrastive_core.compare.comparison import Entry, compare
from contrastive_core.compare.retrieval import FIGURES, Relevant, compress, figures, rows_by_id
from contrastive_core.compare.verdicts import compare_runs
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.samples.tower_pairs import find_given_negatives
from contrastive_core.spaces import example_questions, file_formats
from contrastive_core.spaces.attached_files import read_qrels
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined, towers_of

FOUND = 0.9
HOLDS, DOCUMENTS = 0.95, 900  # of the bound; of the sample that both models encoded
FALSE, COVERS, SECONDS, BYTES = 0.06, (0.93, 0.99), 10, 2e9
LARGE = (768, 1000)  # numbers and queries
WHOLE, QUERIES, WIDTH, NOISE = 20_000, 300, 32, (1.0, 1.1)


def population(rng: np.random.Generator, noise: float, documents: np.ndarray) -> dict[str, np.ndarray]:
    """Each figure of WHOLE queries: each lies near a document of grade 2, beside which another has grade 1."""
    n, number = np.arange(WHOLE), np.repeat(np.arange(WHOLE), 2)
    first = n % len(documents)
    place = np.stack([first, (first + 1) % len(documents)], 1).ravel()
    relevant = Relevant(n, np.arange(len(documents)), number, place, np.tile([2.0, 1.0], WHOLE))
    near = documents[first] + 0.5 * documents[(first + 1) % len(documents)]
    queries = near + noise * rng.normal(size=(WHOLE, WIDTH)).astype(np.float32)
    return figures(relevant, unit_rows(queries.astype(np.float32)), documents)


def claims(simulations: int) -> None:
    """Print how often equal models are told apart, and how often intervals hold the truth."""
    rng = np.random.default_rng(0)
    documents = unit_rows(rng.normal(size=(2000, WIDTH)).astype(np.float32))
    one, two, worse = (population(rng, noise, documents) for noise in (NOISE[0], NOISE[0], NOISE[1]))
    false, inside = 0, dict.fromkeys(FIGURES, 0)
    for _ in range(simulations):
        some = rng.choice(WHOLE, QUERIES, replace=False)
        swap = rng.integers(0, 2, QUERIES).astype(bool)  # equal models: each query from either
        equal = {k: np.stack([np.where(swap, x, y), np.where(swap, y, x)]) for k, x, y in _drawn(one, two, some)}
        false += any(d.claimed for d in compare_runs(["a", "b"], equal, titles=FIGURES))
        for key, x, y in _drawn(one, worse, some):
            low, high = difference(x, y)[1]
            inside[key] += low <= (one[key] - worse[key]).mean() <= high
    share = false / simulations
    print(f"equal models, {QUERIES} queries: false better {share:.2f}  {'ok' if share <= FALSE else 'MISSED'}")
    for key, count in inside.items():
        share = count / simulations
        truth = 100 * float((one[key] - worse[key]).mean())
        kept = "ok" if COVERS[0] <= share <= COVERS[1] else "MISSED"
        print(f"{FIGURES[key]}, {truth:.1f} points apart, {QUERIES} queries: coverage {share:.3f}  {kept}")


def _drawn(one: dict[str, np.ndarray], two: dict[str, np.ndarray], some: np.ndarray):
    return [(key, one[key][some], two[key][some]) for key in FIGURES]


def adapter(simulations: int) -> None:
    """Print in how many splits the bound of the kept recall holds, and how far it is below."""
    rng = np.random.default_rng(0)
    turns = rng.normal(size=(2, WIDTH, 2 * WIDTH)) / WIDTH**0.5

    def encoded(count: int) -> list[np.ndarray]:
        """Return vectors of new items by both models, each with its own distortion and noise."""
        x = rng.normal(size=(count, WIDTH))
        return [np.tanh(x @ turn + 0.2 * rng.normal(size=(count, 2 * WIDTH))).astype(np.float32) for turn in turns]

    every, held, below = encoded(WHOLE), 0, []
    for number in range(simulations):
        documents, some = encoded(DOCUMENTS), rng.choice(WHOLE, QUERIES, replace=False)
        adapter, found, _, first = judge((documents[0], documents[1]), (every[0][some], every[1][some]), seed=number)
        at = np.sort(first)
        old, new, queries = (unit_rows(x) for x in (documents[0][at], documents[1][at], every[1]))
        truth = float(overlap(nearest(queries, adapter(old)), nearest(queries, new)).mean())
        bound = max(one["bound"] for one in found["kept"] if one["kind"] == adapter.kind)
        held += bound <= truth
        below.append(100 * (truth - bound))
    share = held / simulations
    print(
        f"adapter, {QUERIES} queries: the bound of kept recall holds in {share:.2f} of splits, {np.mean(below):.1f} "
        f"points below on average  {'ok' if share >= HOLDS else 'MISSED'}"
    )


def given_negatives() -> None:
    """Print how many planted false negatives are at the top of the list."""
    with tempfile.TemporaryDirectory() as folder:
        files = example_questions.write(Path(folder))
        qrels = read_qrels(Path(folder) / example_questions.JUDGMENTS)
        for path in files:
            towers = towers_of(file_formats.read(path))
            assert towers is not None
            queries, documents = rows_by_id(towers, qrels)
            relevant = {(queries[query], documents[name]) for query, of in qrels.items() for name in of}
            asked, answer = towers.partner_pairs(1_000_000)[0].T
            given, score = find_given_negatives(towers, asked, answer)
            order = [i for i in np.argsort(-score, kind="stable").tolist() if given[i] >= 0]
            is_false = np.array([(int(asked[i]), int(given[i])) in relevant for i in order])
            group = dict(zip(towers.a.tolist(), towers.group_a.tolist(), strict=True))
            every = {(int(row), int(of)) for row, of in towers.given_negatives()}
            planted = sum((row, group[query]) in every for query, row in relevant)
            share = is_false[: 2 * planted].sum() / planted
            kept = "ok" if share >= FOUND else "MISSED"
            print(
                f"{path.stem}: {share:.2f} of {planted} planted false negatives among the first {2 * planted}  {kept}"
            )


def embedded(documents: int, noises: Sequence[float]) -> list[EmbeddingSet]:
    """Return queries near the first documents, and the documents, by a model for each noise."""
    rng, models = np.random.default_rng(0), []
    x = rng.standard_normal((documents, LARGE[0]), np.float32)
    ids = [tuple(f"{letter}{i}" for i in range(n)) for letter, n in (("q", LARGE[1]), ("d", documents))]
    pairs = [str(i) for i in range(LARGE[1])], [str(i) for i in range(documents)]
    for noise in noises:
        near = x[: LARGE[1]] + noise * rng.standard_normal((LARGE[1], LARGE[0]), np.float32)
        sides = EmbeddingSet(near, ids=ids[0]), EmbeddingSet(x, ids=ids[1])
        models.append(joined(*sides, ("query", "document"), *pairs))
    return models


def large(documents: int) -> Callable[[], Any]:
    """Prepare a comparison of two models by judgments; half of the relevant documents are at a random rank."""
    entries = [Entry(name, None, rows) for name, rows in zip("ab", embedded(documents, (3.0, 3.2)), strict=True)]
    qrels = {f"q{i}": {f"d{i}": 1, f"d{i + LARGE[1]}": 1} for i in range(LARGE[1])}
    return lambda: compare(entries, qrels=(qrels, "qrels.tsv"), is_scored_only=True)


def cost(documents: int) -> Callable[[], Any]:
    """Prepare the curve of compressed vectors, as the analysis of the app computes it."""
    pair = towers_of(*embedded(documents, (3.0,)))
    assert pair is not None
    relevant, x = Relevant.of_partners(pair), pair.rows.features
    return lambda: compress(x[relevant.rows], x[relevant.documents], relevant)


def mapped(documents: int) -> Callable[[], Any]:
    """Prepare the adapter between two models."""
    old, new = (rows.features for rows in embedded(documents, (3.0, 3.2)))
    n = LARGE[1]
    return lambda: judge((old[n:], new[n:]), (old[:n], new[:n]))


def timed(name: str, work: Callable[[int], Callable[[], Any]], documents: int) -> None:
    """Print how long a large piece of work takes, and the peak memory of its process."""
    run = work(documents)
    load, start, cpu = os.getloadavg()[0], time.perf_counter(), time.process_time()
    run()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept = "" if work is not large else "  ok" if seconds <= SECONDS and peak <= BYTES else "  MISSED"
    print(
        f"{name}, {documents:,} documents x {LARGE[0]}, {LARGE[1]:,} queries: {seconds:.1f} s ({cpu:.1f} s of CPU), "
        f"{peak / 1e9:.2f} GB at most; load {load:.1f} on {os.cpu_count()} cores{kept}"
    )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--simulations", type=int, default=100)
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--only-large", action="store_true")
    args = options.parse_args()
    if not args.only_large:
        claims(args.simulations)
        adapter(args.simulations)
        given_negatives()
    works = {"two models compared": large, "compressed vectors": cost, "map between two models": mapped}
    for name, work in works.items():
        child = multiprocessing.get_context("spawn").Process(target=timed, args=(name, work, args.documents))
        child.start()
        child.join()


if __name__ == "__main__":
    main()
