"""Metrics of queries are those of ir-measures; compressed vectors have the scores of a plain loop."""

import json
import re

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from contrastive_core.base.errors import UnusableEmbedding
from contrastive_core.base.score import permutation
from contrastive_core.cli.main import main
from contrastive_core.compare.comparison import Entry, compare
from contrastive_core.compare.retrieval import CompressedScore, Relevant, best_by_size, compress, figures, smallest
from contrastive_core.compare.verdicts import Contrast
from contrastive_core.ops.partner_ranks import unit_rows
from contrastive_core.spaces.attached_files import Qrels
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined, towers_of

NAMES = ("query", "document")
QUERIES = np.array([[1, 2, 0], [0, 1, -1], [-2, 1, 1], [1, 0, 0], [1, -1, 3]], np.float32)
DOCUMENTS = np.array([[(i * i) % 5 - 2, (3 * i) % 7 - 3, i % 3 - 1] for i in range(40)], np.float32)
QRELS = {f"q{q}": {f"d{d}": (q + d) % 4 - 1 for d in range(q, 40, 3 + q)} for q in range(5)}
IR_MEASURES = {  # of version 0.4.3: nDCG@10, RR@10, R@10 and AP, of dot products of which many are equal
    "ndcg_10": [0.210396868, 0.378500919, 0, 0.247642788, 0],
    "mrr_10": [0.25, 0.5, 0, 0.125, 0],
    "recall_10": [0.428571429, 0.3, 0, 0.5, 0],
    "map": [0.281434796, 0.356051425, 0.074562475, 0.155085631, 0.062300638],
}


def rows_of(queries: np.ndarray, documents: np.ndarray, same_ids: bool = False, **of_queries) -> EmbeddingSet:
    ids = [tuple(f"{letter}{i}" for i in range(len(x))) for letter, x in (("q", queries), ("d", documents))]
    if same_ids:
        ids = [tuple(name[1:] for name in part) for part in ids]
    sides = EmbeddingSet(queries, ids=ids[0], **of_queries), EmbeddingSet(documents, ids=ids[1])
    return joined(*sides, NAMES, ["x"] * len(queries), ["x"] * len(documents))


def of_dots(rows: EmbeddingSet, qrels: Qrels) -> dict[str, np.ndarray]:
    towers = towers_of(rows)
    assert towers is not None
    relevant = Relevant.of(towers, qrels, "qrels.tsv")
    return figures(relevant, rows.features[relevant.rows], rows.features[relevant.documents])


@pytest.mark.parametrize("same_ids", [False, True])
def test_figures_are_those_of_ir_measures_ties_included(same_ids) -> None:
    qrels = {q[1:]: {d[1:]: g for d, g in of.items()} for q, of in QRELS.items()} if same_ids else QRELS
    found = of_dots(rows_of(QUERIES, DOCUMENTS, same_ids), qrels)
    if same_ids:  # "9" is last where "d9" is last
        assert {name: values.tolist() for name, values in found.items()} == {
            name: values.tolist() for name, values in of_dots(rows_of(QUERIES, DOCUMENTS), QRELS).items()
        }
    for name, values in IR_MEASURES.items():
        assert found[name] == pytest.approx(values, abs=1e-6)


def test_figures_of_random_vectors_are_those_of_scikit_learn_and_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    queries, documents = rng.normal(size=(20, 5)).astype(np.float32), rng.normal(size=(200, 5)).astype(np.float32)
    grade = np.maximum(rng.integers(-9, 4, (20, 200)), 0)
    qrels = {f"q{q}": {f"d{d}": int(g) for d, g in enumerate(row)} for q, row in enumerate(grade)}
    found, s = of_dots(rows_of(queries, documents), qrels), queries @ documents.T
    assert found["ndcg_10"] == pytest.approx(
        [ndcg_score(g[None], x[None], k=10) for g, x in zip(grade, s, strict=True)]
    )
    for q, (row, x) in enumerate(zip(grade, s, strict=True)):
        hits = row[np.argsort(-x)] > 0
        assert found["recall_10"][q] == pytest.approx(hits[:10].sum() / hits.sum())
        assert found["mrr_10"][q] == pytest.approx(1 / (1 + hits.argmax()) if hits[:10].any() else 0)
        assert found["map"][q] == pytest.approx((np.cumsum(hits) / np.arange(1, 201))[hits].mean())


def test_identical_documents_are_tied_wherever_they_stand() -> None:
    rng = np.random.default_rng(0)
    documents = np.repeat(rng.normal(size=(1, 700)).astype(np.float32), 101, 0)
    rows = rows_of(rng.normal(size=(3, 700)).astype(np.float32), documents)
    towers = towers_of(rows)
    assert towers is not None
    relevant = Relevant.of(towers, {"q0": {"d99": 1}, "q1": {"d0": 1}, "q2": {"d98": 1}}, "")
    found = figures(relevant, unit_rows(rows.features[relevant.rows]), unit_rows(documents))
    assert found["map"] == pytest.approx([1, 1 / 101, 1 / 2])
    assert found["mrr_10"] == pytest.approx([0, 1, 0])


def spaces(noise: tuple[float, float], n: int = 200, **of_queries) -> tuple[list[EmbeddingSet], Qrels]:
    rng = np.random.default_rng(1)
    documents, move = rng.normal(size=(2 * n, 8)).astype(np.float32), rng.normal(size=(n, 8)).astype(np.float32)
    qrels = {f"q{i}": {f"d{i}": 2, f"d{i + n}": 1, f"d{(i + 1) % n}": 0} for i in range(n)}
    return [rows_of(documents[:n] + scale * move, documents, **of_queries) for scale in noise], qrels


def compared(sets: list[EmbeddingSet], qrels: Qrels):
    entries = [Entry(name, None, rows) for name, rows in zip("AB", sets, strict=True)]
    return compare(entries, qrels=(qrels, "qrels.tsv"), is_scored_only=True)


def test_the_better_space_is_named_in_each_figure_and_group_and_changed_queries_come_first() -> None:
    labels = np.arange(200) % 2
    found = compared(*spaces((0.3, 1.0), labels=labels))
    assert [*found.accuracy] == ["ndcg_10", "mrr_10", "recall_10", "map"]
    assert found.n_judged == 200
    assert found.verdict.startswith("A is better than B by ")
    assert "points of nDCG@10" in found.verdict
    assert all(d.claimed and d.p_corrected >= d.p for d in found.differences)
    groups = found.by_class("ndcg_10")
    assert sorted((d.label, d.n) for d in groups) == [(0, 100), (1, 100)]
    assert all(d.p < 0.01 and d.interval[0] > 0 for d in groups)
    lead = np.abs(found.correct["ndcg_10"][0] - found.correct["ndcg_10"][1])[found.changed("ndcg_10")]
    assert (np.diff(lead) <= 0).all()
    assert lead[-1] > 0


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((0.01, 0.03), "A is better than B by more than 0.5 points."),
        ((-0.03, -0.01), "B is better than A by more than 0.5 points."),
        ((-0.004, 0.004), "A and B differ by less than 0.5 points."),
        ((-0.004, 0.02), "A is not worse than B by more than 0.5 points."),
        ((-0.02, 0.004), "B is not worse than A by more than 0.5 points."),
        ((-0.02, 0.03), "Either A or B may be worse by more than 0.5 points."),
    ],
)
def test_a_difference_is_held_against_the_smallest_that_matters(interval, said) -> None:
    contrast = Contrast("A", "B", sum(interval) / 2, interval, p=0.001)
    assert contrast.against(0.005) == said
    assert not Contrast("A", "B", 0.02, (0.01, 0.03), p=0.2).against(0.005).startswith("A is better")


def test_the_permutation_test_gives_the_share_of_signs_that_are_as_extreme() -> None:
    d = np.array([0.5, 0.25, 1.0, -0.125, 0, 0])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1)
    exact = (np.abs(signs.T @ d[:4]) >= abs(d.sum()) - 1e-12).mean()
    assert permutation(d) == pytest.approx(exact, abs=0.015)
    rng = np.random.default_rng(0)
    assert np.mean([permutation(rng.normal(size=40) ** 3) < 0.05 for _ in range(100)]) <= 0.11
    assert permutation(np.zeros(5)) == 1


def test_what_cannot_be_compared_is_refused_in_one_sentence() -> None:
    sets, qrels = spaces((0.5, 1.0), 20)
    fewer = sets[1].take(np.arange(len(sets[1]) - 1))
    said = "A and B hold different documents: 1 are in only one of them, for example 'd39'. Ranks among different "
    with pytest.raises(UnusableEmbedding, match=said):
        compared([sets[0], fewer], qrels)
    with pytest.raises(UnusableEmbedding, match=r"^qrels.tsv refers to queries that are not in the data: 1,"):
        compared(sets, qrels | {"z": {"d1": 1}})
    with pytest.raises(UnusableEmbedding, match=r"^qrels.tsv refers to documents that are not in the data: 1,"):
        compared(sets, qrels | {"q0": {"z": 1}})
    plain = EmbeddingSet(sets[0].features)
    with pytest.raises(UnusableEmbedding, match="judgments need vectors of queries and of documents; A has one set"):
        compared([plain, plain], qrels)
    assert compared(sets, qrels | {"q0": {"d1": 0}}).n_judged == 19  # no relevant document


def test_the_command_says_which_and_on_which_queries(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))
    sets, qrels = spaces((0.3, 1.0), 60, labels=np.arange(60) % 2)
    files = [str(tmp_path / f"{name}.npz") for name in "ab"]
    for file, rows in zip(files, sets, strict=True):
        rows.save(file)
    judged = tmp_path / "qrels.tsv"
    judged.write_text("".join(f"{q}\t{d}\t{g}\n" for q, of in qrels.items() for d, g in of.items()))
    assert main(["compare", *files, "--qrels", str(judged), "--top", "2", "--margin", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("a.npz is better than b.npz by ")
    assert "a.npz is better than b.npz by more than 1 points of nDCG@10." in out
    for title in ("nDCG@10", "MRR@10", "Recall@10", "MAP", "0 (30)", "1 (30)"):
        assert f"\n{title} " in out
    assert main(["compare", *files, "--qrels", str(judged), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["queries"]) == 60 == len(record["per_query"]["map"][1])
    assert len(record["changed"]) == 10
    report = tmp_path / "report.html"
    assert main(["report", *files, "--qrels", str(judged), "--out", str(report)]) == 0
    text = report.read_text()
    assert "Queries that changed most, with the first answer of each" in text
    assert "a.npz is better than b.npz by more than 0.5 points of nDCG@10." in text
    judged.write_text("q0\td0\t0\n")
    assert main(["compare", *files, "--qrels", str(judged)]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "error: qrels.tsv judges no document as relevant"


RNG = np.random.default_rng(0)
AXES = np.linalg.qr(RNG.normal(size=(32, 32)))[0]
X = (RNG.normal(size=(1500, 32)) * np.geomspace(1, 0.02, 32) @ AXES).astype(np.float32)  # energy in few directions
ASKED = (X[:60] + 0.25 * RNG.normal(size=(60, 32))).astype(np.float32)
ROWS = joined(EmbeddingSet(ASKED), EmbeddingSet(X), ("query", "document"), range(60), range(1500))
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
    q, d = unit_rows(ASKED), unit_rows(X)
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
