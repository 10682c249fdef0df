"""Compressed vectors: each score is that of a plain loop, full vectors lose nothing, and queries shape no axis."""

import re

import numpy as np
import pytest

from contrastive_core.cli.main import main
from contrastive_core.compare.retrieval import CompressedScore, Relevant, best_by_size, compress, smallest
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined, towers_of

RNG = np.random.default_rng(0)
AXES = np.linalg.qr(RNG.normal(size=(32, 32)))[0]
X = (RNG.normal(size=(1500, 32)) * np.geomspace(1, 0.02, 32) @ AXES).astype(np.float32)  # energy in few directions
QUERIES = (X[:60] + 0.25 * RNG.normal(size=(60, 32))).astype(np.float32)
ROWS = joined(EmbeddingSet(QUERIES), EmbeddingSet(X), ("query", "document"), range(60), range(1500))
TOWERS = towers_of(ROWS)
assert TOWERS is not None
RELEVANT = Relevant.of_partners(TOWERS)


@pytest.fixture(scope="module")
def found() -> list[CompressedScore]:
    return compress(ROWS.features[RELEVANT.rows], ROWS.features[RELEVANT.documents], RELEVANT)


def recall(found: list[CompressedScore], *kind: object) -> CompressedScore:
    (one,) = (s for s in found if (s.reduction, s.width, s.precision, s.metric) == (*kind, "recall_10"))
    return one


def test_partners_are_the_relevant_documents() -> None:
    ids = [ROWS.ids[row] for row in RELEVANT.documents[RELEVANT.place]]
    assert ids == [f"document:{i}" for i in range(60)]
    some = RELEVANT.at_most(4)
    assert some.rows.tolist() == [0, 20, 39, 59]
    assert [ROWS.ids[row] for row in some.documents[some.place]] == [f"document:{i}" for i in (0, 20, 39, 59)]


def test_each_score_is_that_of_a_plain_loop(found: list[CompressedScore]) -> None:
    q, d = unit_rows(QUERIES), unit_rows(X)
    signs, names = np.where(d[:, :16] > 0, 1, -1), np.array(ROWS.ids[60:])
    short = unit_rows(d[:, :16])
    low, high = short.min(0), short.max(0)
    step = (high - low) / 255
    near = np.sign(q[:, :16]) @ signs.T
    by_hand = {
        "float32": unit_rows(q[:, :16]) @ short.T,
        "int8": unit_rows(q[:, :16]) @ (np.round((short - low) / step) * step + low).T,
        "binary": near,
        "rescored": np.where(near >= np.sort(near, 1)[:, -40, None], unit_rows(q[:, :16]) @ signs.T, -1e3),
    }
    for precision, s in by_hand.items():
        own = s[range(60), range(60), None]
        rank = ((s > own) | ((s == own) & (names > names[:60, None]))).sum(1)  # equal codes: the last id first
        one = recall(found, "first", 16, precision)
        assert one.value == pytest.approx((rank < 10).mean())
        assert one.size == {"float32": 64, "int8": 16, "binary": 2, "rescored": 2}[precision]
        assert one.interval[0] <= one.loss <= one.interval[1]


def test_axes_keep_what_few_dimensions_lose(found: list[CompressedScore]) -> None:
    for reduction in ("first", "pca"):  # all axes keep every inner product
        full = recall(found, reduction, 32, "float32")
        assert (full.loss, *full.interval) == pytest.approx((0, 0, 0), abs=1e-12)
    axes = recall(found, "pca", 8, "float32")
    assert axes.value > recall(found, "first", 8, "float32").value + 0.1
    assert axes.value > recall(found, "random", 8, "float32").value + 0.1
    kept = smallest(found, 0.05)
    assert kept
    assert kept[0].size < 128
    assert all(one.interval[0] > -0.05 for one in kept)
    assert smallest(found, -1) == []
    sizes = [scores[0].size for scores in best_by_size(found)]
    assert sizes == sorted({*sizes})


def test_the_command_prints_the_smallest_vectors(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))
    ROWS.save(tmp_path / "pairs.npz")
    assert main(["evaluate", str(tmp_path / "pairs.npz"), "--cost", "--margin", "5"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("60 of 60 queries, 1,500 documents, 32 dimensions; the best vectors of each size:")
    assert "of 128 bytes." in out
    assert "full vectors" in out.splitlines()[-1]
    table = [line for line in out.splitlines() if "(" in line and "to" in line]
    assert "Recall@10, change (95 %)" in out
    assert re.match(r"full vectors +128 +\S+ +\+0\.0 ", table[-1])
    assert re.search(r"  -\d+\.\d \(", table[1])  # the smallest vectors lose
    np.save(tmp_path / "plain.npy", X)
    assert main(["evaluate", str(tmp_path / "plain.npy"), "--cost"]) == 2
    assert "these rows do not belong to two towers" in capsys.readouterr().err
