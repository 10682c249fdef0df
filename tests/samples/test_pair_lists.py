"""The lists of pairs: their order, what stands beside each pair, and decisions as columns."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.pair_lists import FALSE_NEGATIVES, MISMATCHED, PairList, listed, pair_lists
from contrastive_core.records.towers import joined, towers_of
from contrastive_core.samples.tower_pairs import TowerPairs, find_tower_pairs

N = 40


@pytest.fixture
def found() -> tuple[EmbeddingSet, TowerPairs, dict[str, PairList]]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 8))
    a, b = (x + 0.2 * rng.normal(size=(N, 8)) for _ in range(2))
    b[[3, 7]] = b[[7, 3]]  # swapped
    a[20], b[20] = a[21] + 0.01, b[21] + 0.01  # the same said twice
    texts = {"text": np.array([f"says {i}" for i in range(N)])}
    sets = EmbeddingSet(a.astype(np.float32)), EmbeddingSet(b.astype(np.float32), columns=texts)
    towers = towers_of(joined(*sets, ("image", "caption")))
    assert towers is not None
    pairs = find_tower_pairs(towers)
    arrays = {f.name: v for f in fields(pairs) if isinstance(v := getattr(pairs, f.name), np.ndarray)}
    return towers.rows, pairs, pair_lists(towers.rows, arrays)


def test_both_lists_have_the_order_of_the_search(found) -> None:
    rows, pairs, lists = found
    mismatched, alike = lists[MISMATCHED], lists[FALSE_NEGATIVES]
    np.testing.assert_array_equal(mismatched.query, pairs.query[pairs.mismatched()])
    assert {int(q) - N for q in mismatched.query[:2]} == {3, 7}
    assert {int(o) for o in mismatched.other[:2]} == {3, 7}
    assert (mismatched.margin[:2] < 0).all()
    assert (mismatched.twin == -1).all()
    assert len(alike) == len(pairs.false_negatives())
    assert {int(alike.query[0]) - N, int(alike.twin[0]) - N} == {20, 21}
    unit = rows.features / rows.lengths[:, None]
    np.testing.assert_allclose(alike.other_similarity, (unit[alike.query] * unit[alike.other]).sum(1), atol=1e-5)


@pytest.mark.parametrize(
    ("by", "key"), [("rank", lambda x: -x.rank), ("similarity", lambda x: x.similarity), ("margin", lambda x: x.margin)]
)
def test_other_orders_put_the_most_striking_first(found, by: str, key) -> None:
    for pairs in found[2].values():
        values = key(pairs.take(pairs.order(by)))
        assert (np.diff(values) >= 0).all()
        np.testing.assert_array_equal(pairs.order("suspicion"), np.arange(len(pairs)))


def test_a_file_names_texts_evidence_and_decisions(found) -> None:
    rows, _, lists = found
    pairs = lists[MISMATCHED]
    first, second = (rows.ids[int(q)] for q in pairs.query[:2])
    marks = {first: {"what": "drop"}, second: {"what": "relabel", "label": "9"}}
    lines = list(listed(rows, pairs, marks))
    assert len(lines) == N
    assert lines[0]["query text"] in ("says 3", "says 7")
    assert (lines[0]["decision"], lines[1]["decision"], lines[2]["decision"]) == ("mismatched", "true partner", "")
    assert lines[1]["true partner"] == "9"
    assert lines[0]["margin"] == pytest.approx(lines[0]["own cosine"] - lines[0]["other cosine"], abs=2e-4)
    assert "other query" not in lines[0]
    assert next(listed(rows, lists[FALSE_NEGATIVES], {}))["other query text"] in ("says 20", "says 21")
