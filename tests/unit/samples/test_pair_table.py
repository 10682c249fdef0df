"""The table of pairs: the order of its lists, what stands beside each pair, and columns that name the towers."""

from dataclasses import fields

import numpy as np
import pytest

from contrastive_core.samples.pair_table import pair_table
from contrastive_core.samples.sample_lists import FALSE_NEGATIVES, GIVEN_NEGATIVES, LISTS, MISMATCHED
from contrastive_core.samples.sample_table import SampleTable
from contrastive_core.samples.tower_pairs import TowerPairs, find_tower_pairs
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import NEGATIVE_OF, joined, towers_of

N = 40


def table_of(rows: EmbeddingSet) -> tuple[EmbeddingSet, TowerPairs, SampleTable]:
    towers = towers_of(rows)
    assert towers is not None
    pairs = find_tower_pairs(towers)
    arrays = {f.name: v for f in fields(pairs) if isinstance(v := getattr(pairs, f.name), np.ndarray)}
    names = [towers.names[pairs.query_tower], towers.names[1 - pairs.query_tower]]
    return towers.rows, pairs, pair_table(towers.rows, arrays, {"names": names, "candidates": pairs.candidates})


@pytest.fixture
def found() -> tuple[EmbeddingSet, TowerPairs, SampleTable]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 8))
    a, b = (x + 0.2 * rng.normal(size=(N, 8)) for _ in range(2))
    b[[3, 7]] = b[[7, 3]]  # swapped
    a[20], b[20] = a[21] + 0.01, b[21] + 0.01  # the same said twice
    texts = {"text": np.array([f"says {i}" for i in range(N)])}
    sets = EmbeddingSet(a.astype(np.float32)), EmbeddingSet(b.astype(np.float32), columns=texts)
    return table_of(joined(*sets, ("query", "document")))


def test_both_lists_have_the_order_of_the_search(found) -> None:
    rows, pairs, table = found
    mismatched, alike = (LISTS[name].order(table) for name in (MISMATCHED, FALSE_NEGATIVES))
    np.testing.assert_array_equal(mismatched, pairs.mismatched())
    texts = [table.texts[str(table.columns["id"][row])] for row in mismatched[:2]]
    assert sorted(texts) == ["says 3", "says 7"]
    assert (table.extra["margin"][mismatched[:2]] < 0).all()
    assert len(alike) == len(pairs.false_negatives())
    assert alike[0] in pairs.false_negatives()[0]
    assert {table.texts[str(i)] for i in (table.columns["id"][alike[0]], table.extra["twin"][alike[0]])} == {
        "says 20",
        "says 21",
    }
    unit, at = rows.features / rows.lengths[:, None], {name: i for i, name in enumerate(rows.ids)}
    ends = ([at[str(i)] for i in ids[alike]] for ids in (table.columns["id"], table.extra["twin_partner"]))
    cosine = np.einsum("nd,nd->n", *(unit[end] for end in ends))
    np.testing.assert_allclose(table.extra["twin_cosine"][alike], cosine, atol=1e-5)


def test_other_orders_put_the_most_striking_first(found) -> None:
    table = found[2]
    for one in (LISTS[MISMATCHED], LISTS[FALSE_NEGATIVES]):
        assert len(one.orders) == 4
        for by in one.orders:
            rows = one.order(table, by)
            assert set(rows) == set(one.order(table))
            assert (np.diff(table.score(by.removeprefix("-"))[rows]) * (1 if by[0] == "-" else -1) >= 0).all()


def test_columns_are_named_by_the_towers_that_they_hold(found) -> None:
    table = found[2]
    assert table.towers == ("document", "query")  # the algorithm's queries are the documents here
    row = int(table.ranked("mismatched")[0])
    line = LISTS[MISMATCHED].values(table, row)  # type: ignore[misc]
    assert line["document"] == table.columns["id"][row]
    assert line["document, text"] in ("says 3", "says 7")
    assert line["query"] == table.extra["partner"][row]
    assert line["margin"] == pytest.approx(line["own cosine"] - line["other cosine"], abs=2e-4)
    assert "other document" not in line
    assert "From document to its partner: cosine " in LISTS[MISMATCHED].reason(table, row)
    twins = LISTS[FALSE_NEGATIVES].values(table, int(table.ranked("false_negatives")[0]))  # type: ignore[misc]
    assert twins["other document, text"] in ("says 20", "says 21")


def test_a_given_negative_that_resembles_an_answer_comes_first() -> None:
    rng = np.random.default_rng(1)
    x, far = rng.normal(size=(N, 8)), rng.normal(size=(N, 8))
    queries, answers = (x + 0.2 * rng.normal(size=(N, 8)) for _ in range(2))
    far[5] = answers[5] + 0.1 * rng.normal(size=8)  # the query's second answer
    pairs, none = np.arange(N).astype(str), np.full(N, "")
    documents = EmbeddingSet(np.concatenate([answers, far]).astype(np.float32))
    documents.columns[NEGATIVE_OF] = np.concatenate([none, pairs])
    both = joined(EmbeddingSet(queries.astype(np.float32)), documents, ("query", "document"), pairs, [*pairs, *none])
    rows, _, table = table_of(both)
    one = LISTS[GIVEN_NEGATIVES]
    order = one.order(table)
    assert len(order) == N  # each negative once
    row, ids = int(order[0]), list(rows.ids)
    assert table.extra["given"][row] == ids[N + N + 5]
    assert one.other(table, row) == ids[N + N + 5] == one.beside(table, row)[1].id
    unit = rows.features / rows.lengths[:, None]
    query, answer, negative = (unit[at] for at in (5, N + 5, N + N + 5))
    assert table.extra["given_cosine"][row] == pytest.approx(float(query @ negative), abs=1e-5)
    line = one.values(table, row)  # type: ignore[misc]
    assert line["given negative"] == ids[N + N + 5]
    assert {line["query"], line["document"]} == {ids[5], ids[N + 5]}
    means = unit[:N].mean(0), unit[N:].mean(0)
    parts = (query - means[0], answer - means[1], negative - means[1])
    q, a, n = (part / np.linalg.norm(part) for part in parts)
    assert table.score("given_negatives")[row] == pytest.approx(float(n @ (q + a)) / 2, abs=1e-5)
