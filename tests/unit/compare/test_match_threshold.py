"""The threshold of a match keeps its false-match rate in 95 of 100 draws, and its basis is what was judged."""

import json
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.cli.main import main
from contrastive_core.compare.match_threshold import GIVEN, HARDEST, JUDGED, JudgedPairs, find_threshold
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import NEGATIVE_OF, Towers, joined, towers_of

RATE, DRAWS = 0.05, 200


def drawn(rng: np.random.Generator, queries: int, per_query: int) -> JudgedPairs:
    """Pairs that are no match, with an effect of their query, and as many matches."""
    query = np.tile(np.repeat(np.arange(queries), per_query), 2)
    effect = rng.normal(size=queries)[query]
    is_match = np.arange(len(query)) >= len(query) // 2
    return JudgedPairs(query, np.tanh(0.3 * effect + 0.2 * rng.normal(size=len(query)) + 0.5 * is_match), is_match, "")


@pytest.mark.parametrize("per_query", [1, 8])
def test_the_rate_holds_in_95_of_100_draws_and_most_of_it_is_used(per_query: int) -> None:
    rng = np.random.default_rng(0)
    of_all = drawn(rng, 40_000, per_query)
    others = np.sort(of_all.similarity[~of_all.is_match])
    true = []
    for _ in range(DRAWS):
        found = find_threshold(drawn(rng, 300, per_query), RATE)
        assert found.threshold is not None
        true.append(1 - np.searchsorted(others, found.threshold) / len(others))
    assert np.mean(np.array(true) <= RATE) >= 0.95
    assert np.median(true) > RATE / 2  # a threshold of 1 would keep any rate


def test_too_few_queries_are_named_and_one_more_suffices() -> None:
    query = np.arange(59)
    pairs = [JudgedPairs(query[:n], query[:n] / 100.0, np.arange(n) < 0, JUDGED) for n in (58, 59)]
    few, enough = (
        find_threshold(JudgedPairs(*(np.append(x, y) for x, y in ((p.query, 99), (p.similarity, 0.9))),
                                   np.append(p.is_match, True), JUDGED), RATE) for p in pairs
    )  # fmt: skip
    assert few.threshold is None
    assert few.sentence("a").endswith("Judge at least 59 queries (now 58), or allow a higher rate.")
    assert enough.threshold == 0.5801  # above all of them
    assert (enough.kept, enough.false_rate) == (1, 0)
    assert "Only" not in enough.basis


def test_a_threshold_that_few_matches_reach_says_so() -> None:
    query, is_match = np.tile(np.arange(100), 2), np.arange(200) < 100
    similarity = np.where(is_match, np.where(query < 7, 0.9, 0.1), 0.5)
    found = find_threshold(JudgedPairs(query, similarity, is_match, JUDGED), 0.05)
    assert found.basis.endswith(" Only 7.0 % of the matches reach this threshold. A higher rate keeps more of them.")


def towers(negatives: bool) -> Towers:
    x = np.eye(4, dtype=np.float32)
    queries, documents = x[:3], np.concatenate([x[:3], x[:1] + x[1:2]])
    columns = {NEGATIVE_OF: np.array(["", "", "", "0"])} if negatives else {}
    sides = EmbeddingSet(queries, ids=("q0", "q1", "q2")), EmbeddingSet(documents, ids=tuple("abcd"), columns=columns)
    found = towers_of(joined(*sides, ("query", "document"), ["0", "1", "2"], ["0", "1", "2", ""]))
    assert found is not None
    return found


def listed(pairs: JudgedPairs) -> list[tuple[int, float, bool]]:
    return sorted(zip(pairs.query.tolist(), pairs.similarity.round(3).tolist(), pairs.is_match.tolist(), strict=True))


def test_pairs_come_from_judgments_given_negatives_or_the_most_similar_other_document() -> None:
    right = [(q, 1.0, True) for q in range(3)]
    given, hardest = JudgedPairs.of(towers(True)), JudgedPairs.of(towers(False))
    assert (given.kind, listed(given)) == (GIVEN, sorted([*right, (0, 0.707, False)]))
    assert (hardest.kind, listed(hardest)) == (
        HARDEST, sorted([*right, (0, 0.707, False), (1, 0.707, False), (2, 0.0, False)])
    )  # fmt: skip
    judged = JudgedPairs.of(towers(False), {"q0": {"a": 2, "b": 0}, "q1": {"d": 1}}, "test.tsv")
    assert (judged.kind, listed(judged)) == (JUDGED, [(0, 0.0, False), (0, 1.0, True), (1, 0.707, True)])


def test_the_command_exports_one_number_with_its_basis(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, n = np.random.default_rng(0), 200
    x = rng.normal(size=(n, 16)).astype(np.float32)
    np.savez(tmp_path / "pair.npz", query=x + 0.3 * rng.normal(size=x.shape).astype(np.float32), document=x)
    arguments = ["threshold", str(tmp_path / "pair.npz"), "--rate", "5", "--out", str(tmp_path / "t.json")]
    assert main(arguments) == 0
    said, kept = capsys.readouterr().out, json.loads((tmp_path / "t.json").read_bytes())
    assert said.startswith(f"pair.npz: a pair is a match from a similarity of {kept['threshold']:.4f}. ")
    assert (kept["rate"], kept["queries"], kept["matches"]) == (0.05, n, n)
    assert kept["false_rate"] < 0.05 < kept["kept"]
    assert sum(part["n"] for part in kept["calibration"]) == n  # the first answers
    assert main([*arguments[:2], "--rate", "100"]) == 2
    assert "between 0 and 100" in capsys.readouterr().err
