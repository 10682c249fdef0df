"""Recall against a plain loop, its chance level against draws; the gap of planted towers; their means subtracted."""

import json

import numpy as np
import pytest

from contrastive_core.base.errors import CannotScore
from contrastive_core.base.messages import decode, encode
from contrastive_core.base.score import difference, paired_p, permutation
from contrastive_core.compare import towers as scores
from contrastive_core.compare.comparison import Comparison, Entry, compare
from contrastive_core.compare.towers import compare_centered, tower_notes, tower_scores
from contrastive_core.ops.partner_ranks import RightAnswers, partner_ranks
from contrastive_core.runs.run import Run
from contrastive_core.samples import tower_pairs
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import Towers, joined, towers_of, with_captions
from contrastive_core.train import monitor

NAMES = ("question", "answer")


def pair(a: np.ndarray, b: np.ndarray, *groups: list[int], **of_b: dict[str, np.ndarray]) -> Towers:
    found = towers_of(joined(EmbeddingSet(a), EmbeddingSet(b, **of_b), NAMES, *groups))
    assert found is not None
    return found


def planted(n: int, m: int, groups_b: list[int], d: int = 8) -> Towers:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(n, d)).astype(np.float32), rng.normal(size=(m, d)).astype(np.float32)
    return pair(a, b, list(range(n)), groups_b)


def loop_ranks(queries, candidates, group, other_group) -> list[int]:
    ranks = []
    for q, g in zip(queries, group, strict=True):
        if g < 0:
            continue
        s = candidates @ q / np.linalg.norm(candidates, axis=1)
        order = np.argsort(-s)
        ranks.append(1 + next(place for place, j in enumerate(order) if other_group[j] == g))
    return ranks


@pytest.mark.parametrize("reverse", [False, True])
def test_recall_is_that_of_a_plain_loop_with_several_partners(reverse, monkeypatch) -> None:
    monkeypatch.setattr(scores, "BLOCK", 50)  # several blocks
    both = planted(12, 20, [i % 10 for i in range(18)] + [-1, -1])
    found = scores.retrieval(both, reverse)
    a, b = both.rows.features[both.a], both.rows.features[both.b]
    sides = ((b, a, both.group_b, both.group_a), (a, b, both.group_a, both.group_b))
    ranks = loop_ranks(*sides[not reverse])
    # a partner further down does not come before the best one, so both count the same rows
    assert found.ranks.expected.tolist() == ranks
    assert found.recall(5).n == len(ranks) == (18 if reverse else 10)
    assert found.recall(5).value == np.mean(np.array(ranks) <= 5)
    low, high = found.recall(5).interval
    assert low <= found.recall(5).value <= high


def test_chance_is_the_share_of_random_draws() -> None:
    rng = np.random.default_rng(0)
    drawn = np.mean([(rng.permutation(20)[:5] < 3).any() for _ in range(4000)])
    both = planted(20, 60, [i % 20 for i in range(60)])
    assert scores.retrieval(both, reverse=True).recall(5).chance == pytest.approx(5 / 20)
    three = RightAnswers.of(np.array([0]), np.array([0] * 3 + [-1] * 17))
    rows = np.random.default_rng(1).normal(size=(20, 4))
    assert partner_ranks(rows[:1], rows, three).chance(5)[0] == pytest.approx(drawn, abs=0.03)
    assert partner_ranks(rows[:1], rows[:4], RightAnswers.of(np.array([0]), np.arange(4))).chance(10)[0] == 1


def test_a_collapsed_encoder_scores_chance() -> None:
    ones = np.ones((30, 4), np.float32)
    both = pair(ones, ones)
    found = scores.retrieval(both)
    assert found.recall(10).value == pytest.approx(10 / 30) == pytest.approx(found.recall(10).chance)
    assert found.ranks.reciprocal(10) == pytest.approx((1 / np.arange(1, 11)).sum() / 30)
    assert (found.ranks.expected == 1 + 29 / 2).all()
    assert scores.modality_gap(both) == pytest.approx(0, abs=1e-6)
    assert scores.modality_gap(pair(ones, -ones)) == pytest.approx(2)


def loop_of_texts(unit: np.ndarray, towers: Towers, row: int) -> tuple[float, list[float]]:
    """The expected rank and the probability of a hit at 1, 5, 10, from random orders of equally similar rows."""
    texts, pairs = towers.rows.columns["text"], towers.rows.columns["pair"]
    is_image = row in towers.a
    rows = towers.b if is_image else towers.a

    def same(i: int, j: int) -> bool:
        return i == j or bool(texts[i] and texts[i] == texts[j])

    partners = [(i, j) for i in towers.a.tolist() for j in towers.b.tolist() if pairs[i] == pairs[j] != ""]
    both_ways = [(i, j) if is_image else (j, i) for i, j in partners]
    right = np.array([any(same(row, i) and same(j, other) for i, j in both_ways) for other in rows.tolist()])
    s = np.round(unit[rows] @ unit[row], 6)
    rng, places = np.random.default_rng(0), []
    for _ in range(1500):
        order = np.lexsort((rng.random(len(s)), -s))
        places.append(1 + int((~right[order])[: int(right[order].argmax())].sum()))
    return float(np.mean(places)), [float(np.mean(np.array(places) <= k)) for k in scores.KS]


def test_equal_captions_are_right_for_one_another_and_ties_are_random() -> None:
    """Against a plain loop over all pairs. Captions 0, 1 and 2 are equal, 3 and 4 only have equal vectors."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(8, 4)).astype(np.float32)
    texts = np.array(["red", "red", "red", "blue", "green", "", "", "red"])
    captions = (images + rng.normal(size=(8, 4))).astype(np.float32)
    captions[[1, 2, 7]], captions[4] = captions[0], captions[3]
    both = pair(images, captions, columns={"text": texts})
    unit = both.rows.features / np.linalg.norm(both.rows.features, axis=1, keepdims=True)
    for reverse in (False, True):
        found = scores.retrieval(both, reverse)
        for q, row in enumerate(found.rows.tolist()):
            rank, hits = loop_of_texts(unit, both, row)
            assert found.ranks.expected[q] == pytest.approx(rank, abs=0.06)
            assert [found.ranks.hits(k)[q] for k in scores.KS] == pytest.approx(hits, abs=0.05)
    assert tower_notes(both)["notes"] == [
        "4 of 8 rows in answer are duplicates. Retrieving any copy counts as correct."
    ]
    back = scores.retrieval(both, reverse=True)
    assert len({*back.ranks.expected[[0, 1, 2, 7]].tolist()}) == 1  # one text, one rank
    find = tower_pairs.find_tower_pairs(both)
    for i in range(8):
        (partner,) = scores.partners_of(both, i + 8)
        assert find.rank[i] == partner.rank
        assert find.rank_back[i] == partner.rank_back


def test_equal_towers_are_found_bad_rows_left_out_and_bit_identical_rows_equal() -> None:
    rows = np.random.default_rng(1).normal(size=(20, 6)).astype(np.float32)
    bad = rows.copy()
    bad[3], bad[4, 0] = 0, np.nan
    both = pair(rows, bad)
    forth, back = scores.retrieval(both).recall(1), scores.retrieval(both, reverse=True).recall(1)
    assert (forth.n, forth.value, back.value) == (18, 1, 1)
    rows[10:] = rows[:10]
    found = scores.retrieval(pair(rows, rows)).recall(1)
    assert (found.value, found.chance) == (1, pytest.approx(2 / 20))
    assert [note.partition(" rows in ")[0] for note in tower_notes(pair(rows, rows))["notes"]] == ["20 of 20"] * 2


def test_towers_without_a_usable_pair_cannot_be_scored() -> None:
    both = pair(np.eye(3, 4, dtype=np.float32), np.zeros((3, 4), np.float32))
    with pytest.raises(CannotScore, match="partner"):
        scores.retrieval(both)
    with pytest.raises(CannotScore):
        scores.modality_gap(both)
    own, chance, _ranks = scores.tower_scores(both)
    assert not chance
    assert all(score.value is None and "partner" in score.missing for score in own.values())


def test_scores_of_towers_stand_beside_chance_and_keep_each_rank() -> None:
    both = planted(12, 20, [i % 10 for i in range(18)] + [-1, -1])
    own, chance, ranks = scores.tower_scores(both)
    found = [scores.retrieval(both), scores.retrieval(both, reverse=True)]
    for k in scores.KS:
        for name, one in zip((f"recall_{k}_forth", f"recall_{k}_back"), found, strict=True):
            assert (own[name].value, own[name].interval) == (one.recall(k).value, one.recall(k).interval)
            assert chance[name].value == one.recall(k).chance
    assert own["modality_gap"].value == scores.modality_gap(both)
    assert own["recall_1_back"].title == "Recall@1, answer → question"
    for one in found:
        np.testing.assert_array_equal(ranks[one.rows], one.ranks.expected)
    assert (ranks == -1).sum() == 2 + 2  # of questions 10 and 11, and of the last answers


def test_partners_of_a_row_have_the_ranks_of_retrieval_in_both_directions() -> None:
    one_each = planted(12, 12, [*range(11), -1])
    forth, back = scores.retrieval(one_each), scores.retrieval(one_each, reverse=True)
    of_row = dict(
        zip([*forth.rows.tolist(), *back.rows.tolist()], [*forth.ranks.expected, *back.ranks.expected], strict=True)
    )
    for row in (0, 5, 14):
        (partner,) = scores.partners_of(one_each, row)
        assert (partner.rank, partner.rank_back) == (of_row[row], of_row[partner.row])
        assert partner.row == (row + 12) % 24
    assert scores.partners_of(one_each, 11) == scores.partners_of(one_each, 23) == []
    several = scores.partners_of(both := planted(4, 12, [i % 4 for i in range(12)]), 0)
    assert {partner.row for partner in several} == {4, 8, 12}
    assert [p.similarity for p in several] == sorted((p.similarity for p in several), reverse=True)
    assert several[0].rank == scores.retrieval(both).ranks.expected[0]
    assert len(scores.partners_of(both, 0, most=2)) == 2


def test_recall_at_chance_and_equal_rows_are_said() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(300, 16)).astype(np.float32)
    for order, says in ((rng.permutation(300), True), (np.arange(300), False)):
        warnings = tower_notes(pair(rows, rows[order] + 0.1))["warnings"]
        assert [note.startswith("Recall is at chance") for note in warnings] == [True] * says
    rows[1] = rows[0]
    (first, _) = tower_notes(pair(rows, rows))["notes"]
    assert first.startswith("2 of 300 rows in question are duplicates.")


def blurred(noise: float, labels: np.ndarray | None = None, groups: list[int] | None = None) -> EmbeddingSet:
    """100 questions and their answers, which lie further off with more noise."""
    rng = np.random.default_rng(5)
    a, move = rng.normal(size=(100, 8)).astype(np.float32), rng.normal(size=(100, 8)).astype(np.float32)
    return joined(EmbeddingSet(a, labels), EmbeddingSet(a + noise * move, labels), NAMES, groups, groups)


@pytest.mark.parametrize("labels", [None, np.arange(100) % 5])
def test_spaces_of_two_towers_are_compared_by_recall_and_labels_do_not_vote_across_towers(labels) -> None:
    sets = [blurred(noise, labels) for noise in (0.5, 1.5)]
    found = compare([Entry(name, None, rows) for name, rows in zip("AB", sets, strict=True)], every_score=True)
    assert [*found.accuracy] == ["recall_1_forth", "recall_1_back", "mrr_10_forth", "mrr_10_back"]
    for number, (metric, values) in enumerate(found.accuracy.items()):
        retrieved = [scores.retrieval(towers, bool(number % 2)) for towers in map(towers_of, sets)]
        own = [one.recall(1).value for one in retrieved]
        if number > 1:
            ranks = np.stack([one.ranks.expected for one in retrieved])
            own = np.where(ranks <= 10, 1 / ranks, 0).mean(1)
        assert values == pytest.approx(own)
        difference = next(d for d in found.differences if d.metric == metric)
        assert difference.value == pytest.approx(own[0] - own[1])
        assert difference.claimed
    assert found.n_judged == 100
    assert "better than B by" in found.verdict
    assert "points of Recall@1, question → answer" in found.verdict
    assert "knn" not in found.scores[0]
    again = Comparison.of(json.loads(json.dumps(encode(found.plain())), object_hook=decode), found.arrays())
    assert again.verdict == found.verdict


def test_queries_that_share_partners_are_drawn_and_tested_together() -> None:
    groups = [i // 2 for i in range(100)]
    sets = [blurred(noise, np.arange(100) // 50, groups) for noise in (0.5, 1.5)]
    found = compare([Entry(name, None, rows) for name, rows in zip("AB", sets, strict=True)])
    assert [*found.accuracy] == ["recall_1_forth", "mrr_10_forth"]  # of the direction in which people search
    right = found.correct["recall_1_forth"][:, :100]
    sums = (right[0].astype(float) - right[1]).reshape(50, 2).sum(1)
    assert found.differences[0].p == permutation(sums)
    assert found.differences[0].interval == pytest.approx(difference(sums / 2, 0 * sums)[1], abs=0.02)
    again = Comparison.of(json.loads(json.dumps(encode(found.plain())), object_hook=decode), found.arrays())
    for one in (found, again):
        of_class = next(d for d in one.by_class("recall_1_forth") if d.label == 0)
        assert of_class.interval == pytest.approx(difference(sums[:25] / 2, 0 * sums[:25])[1], abs=0.03)


def test_copies_of_a_sample_in_a_group_make_no_interval_narrower() -> None:
    a, b = np.random.default_rng(0).random((2, 60)) < [[0.7], [0.5]]
    copies, groups = np.repeat(np.stack([a, b]), 4, 1), np.repeat(np.arange(60), 4)
    low, high = difference(a, b)[1]
    assert difference(*copies, groups=groups)[1] == pytest.approx((low, high), abs=0.02)
    assert np.ptp(difference(*copies)[1]) < 0.6 * (high - low)
    assert paired_p(*copies, groups) == permutation(a.astype(float) - b)


def test_the_most_similar_row_of_the_other_tower_is_that_of_a_plain_loop(monkeypatch) -> None:
    monkeypatch.setattr(scores, "BLOCK", 70)  # several blocks
    both = planted(12, 20, list(range(20)))
    unit = both.rows.features / np.linalg.norm(both.rows.features, axis=1, keepdims=True)
    rows = np.array([3, 31, 0])
    others = [both.a if row in both.b else both.b for row in rows]
    expected = [int(at[np.argmax(unit[at] @ unit[row])]) for row, at in zip(rows, others, strict=True)]
    assert scores.most_similar(both, rows).tolist() == expected


def captioned(noise: float, n: int = 60, per_image: int = 2, shift: float = 0.0, seed: int = 0) -> Towers:
    """Images, and captions that are the same rows with noise, moved by `shift` along one axis."""
    rng = np.random.default_rng([seed, 1])
    images = rng.normal(size=(n, 8)).astype(np.float32)
    of = np.repeat(np.arange(n), per_image)
    texts = images[of] + noise * rng.normal(size=(len(of), 8))
    texts[:, 0] += shift
    both = towers_of(with_captions(EmbeddingSet(images), texts.astype(np.float32), of))
    assert both is not None
    return both


def test_less_the_means_of_the_towers_the_gap_closes_and_partners_are_found() -> None:
    apart = captioned(0.3, shift=30.0)
    before, after, differences = compare_centered(apart)
    own = tower_scores(apart)[0]
    assert [before[name].value for name in differences] == [own[name].value for name in differences]
    assert len(differences) == 7
    for name, (value, low, high) in differences.items():
        assert value == pytest.approx(after[name].value - before[name].value)
        assert low <= value <= high
    assert differences["modality_gap"][2] < -0.3
    assert after["modality_gap"].value < 0.1
    assert differences["recall_1_forth"][1] > 0


def test_captions_of_one_image_are_drawn_together() -> None:
    """Five equal captions of an image say no more than one: the interval stays as wide."""
    widths = []
    for per_image in (1, 5):
        one, of = captioned(0.8, 50, 1, shift=3.0), np.repeat(np.arange(50), per_image)
        both = towers_of(with_captions(one.rows.take(one.a), one.rows.features[one.b][of], of))
        assert both is not None
        _value, low, high = compare_centered(both)[2]["recall_1_back"]
        widths.append(high - low)
    assert widths[1] == pytest.approx(widths[0], rel=0.1)


def test_the_scores_of_a_training_are_those_of_an_evaluation(clip_run: Run) -> None:
    epochs = [line for line in clip_run.metrics() if "images_per_s" not in line]
    assert ["modality_gap" in line for line in epochs] == [True, True]
    both = captioned(0.8)
    of = np.repeat(np.arange(60), 2)  # the image of each caption
    found = monitor.tower_scores(both.rows.features[both.a], both.rows.features[both.b], of)
    own = tower_scores(both)[0]
    assert {"modality_gap", "recall_1_forth", "recall_1_back"} <= found.keys()
    assert found == {name: pytest.approx(own[name].value, abs=1e-3) for name in found}  # rows in float16
