"""Comparing spaces: planted differences are found with the right sign, equal ones are not."""

import dataclasses
import json

import numpy as np
import pytest
from cases import cases

from contrastive_core import metrics as all_metrics
from contrastive_core.base.memory import rows_of_sample
from contrastive_core.base.score import Score, holm
from contrastive_core.cli.main import main
from contrastive_core.compare import comparison, representation_similarity, verdicts
from contrastive_core.compare.comparison import Entry, compare
from contrastive_core.compare.evaluate import evaluate_sets
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

RNG = np.random.default_rng
PAIR = comparison.Comparison(["a", "b"], (), {}, {}, [], *[np.eye(2)] * 3, 1, np.empty(0), [], [])


def space(n: int, noise: float, seed: int = 0, split: str = "test") -> EmbeddingSet:
    """Four classes at the corners of a square, blurred by `noise`."""
    labels = np.arange(n) % 4
    centers = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], np.float32)
    rng = RNG([seed, n])
    x = centers[labels] + noise * rng.normal(size=(n, 3))
    return EmbeddingSet(x.astype(np.float32), labels.astype(np.int64), split=split)


def test_identical_spaces_give_no_difference() -> None:
    a, train = space(400, 0.5), space(800, 0.5, split="train")
    found = compare([Entry("a", train, a), Entry("b", train, a)])
    said = (
        "No significant difference between a and b: 0.0 points of kNN accuracy (95 % CI over the samples: 0.0 to 0.0)."
    )
    assert found.verdict == said
    assert found.differences[0].value == 0
    assert not found.differences[0].claimed
    assert found.cka[0, 1] == pytest.approx(1)
    assert found.overlap[0, 1] == 1
    assert found.procrustes[0, 1] == pytest.approx(0, abs=1e-6)


def test_a_better_space_is_named_with_an_interval_that_holds_the_truth() -> None:
    good, bad = (0.3, 0.9)
    train = {s: space(800, s, split="train") for s in (bad, good)}
    names = {bad: "bad", good: "good"}
    found, big = (
        compare([Entry(names[s], train[s], space(n, s, seed)) for s in (bad, good)])
        for n, seed in ((600, 1), (8000, 2))
    )
    assert [d.metric for d in found.differences] == ["knn", "linear_probe"]
    assert found.verdict == found.verdicts["knn"]
    for d in found.differences:
        accuracy = big.accuracy[d.metric]
        assert found.verdicts[d.metric].startswith("good is better than bad by ")
        assert verdicts.ACCURACIES[d.metric] in found.verdicts[d.metric]
        assert d.claimed
        assert d.interval[0] < accuracy[0] - accuracy[1] < d.interval[1]
        assert d.p < d.p_corrected or d.p_corrected == d.p == max(
            e.p for e in found.differences
        )  # corrected together, for both accuracies


def test_accuracies_may_disagree_and_each_says_what_it_shows() -> None:
    """Rows whose class is the sign of one small column: a line reads it off, neighbors do not."""

    def entry(name: str, scale: float) -> Entry:
        sets = []
        for n, seed in ((600, 0), (500, 1)):
            x = RNG(seed).normal(size=(n, 9)).astype(np.float32)
            x[:, 0] *= scale
            sets.append(EmbeddingSet(x, (x[:, 0] > 0).astype(np.int64)))
        return Entry(name, *sets)

    found = compare([entry("small", 0.05), entry("large", 10.0)])
    assert found.verdicts["knn"].startswith("large is better than small by ")
    assert found.verdicts["linear_probe"].startswith("No significant difference between ")


def test_an_accuracy_that_is_none_is_refused() -> None:
    for metrics in ([], ["rankme"], ["knn", "=x"]):
        with pytest.raises(ValueError, match="compared by knn and linear_probe"):
            compare([Entry("a", None, space(20, 0.3)), Entry("b", None, space(20, 0.5))], metrics)


def test_recorded_scores_are_what_a_comparison_shows() -> None:
    """Figures of the record, not those that this machine would compute, where rows are the same."""
    train, test = space(200, 0.8, split="train"), space(100, 0.8, 1)
    known = evaluate_sets(["knn", "linear_probe"], train, test)
    planted = {}
    for name, score in known.items():
        right = np.ones(100)
        right[:40] = 0
        planted[name] = dataclasses.replace(score, value=0.6, arrays={"per_sample": right})
    pair = [Entry("a", train, test, scores=planted), Entry("b", train, test, scores=known)]
    found = compare(pair)
    assert found.accuracy["knn"][0] == found.accuracy["linear_probe"][0] == 0.6
    cut = compare([pair[0], Entry("b", train, test.take(np.arange(50, 100)))])
    assert cut.accuracy["knn"][0] == cut.accuracy["knn"][1]  # fewer rows: both computed on them


def test_a_comparison_comes_back_with_where_its_neighbors_are_approximate(monkeypatch) -> None:
    train, test = space(80, 0.4, split="train"), space(60, 0.4)
    known = evaluate_sets(all_metrics.names(), train, test, Graphs("cpu"))
    known["knn"].extras["recall"] = 0.987
    pair = [Entry("a", train, test, scores=known), Entry("b", train, space(60, 0.8))]
    exact, get = compare(pair), Graphs.get
    assert exact.recall is None

    def approximate(self: Graphs, *args):
        found = get(self, *args)
        return dataclasses.replace(found, recall=0.75 if args[0] is pair[1].test else 0.9)

    monkeypatch.setattr(Graphs, "get", approximate)
    made = compare(pair, every_score=True)
    assert np.array_equal(made.overlap, exact.overlap)
    again = comparison.Comparison.of(json.loads(json.dumps(made.plain())), made.arrays())
    for name in ("verdicts", "differences", "tests", "made_of", "recall"):
        assert getattr(again, name) == getattr(made, name)
    assert again.recall == 0.75
    assert again.made_of["knn"][0] == "approximate neighbors, recall 98.7 %"
    assert again.scores[1]["knn"].interval == made.scores[1]["knn"].interval
    for name in ("correct", "judged", "predicted"):
        assert np.array_equal(getattr(again, name)["linear_probe"], getattr(made, name)["linear_probe"])


def test_an_interval_that_excludes_zero_is_not_claimed_where_the_corrected_p_is_large() -> None:
    """Seven samples of 400 differ, all in favor of b."""
    right = np.stack([np.arange(400) < limit for limit in (300, 307, 307)])
    found = verdicts.compare_runs(["a", "b", "c"], {"knn": right, "linear_probe": right})
    made = next(d for d in found if (d.a, d.b) == ("a", "b"))
    assert made.interval[1] < 0
    assert made.p_corrected >= 0.05
    assert not made.claimed
    assert "but that is not significant: the corrected p value is" in made.contrast.sentence


def test_differences_of_classes_have_intervals_that_cover() -> None:
    """Two runs that are right at random, A more often in one class; one sample has no label, one is not judged."""
    rng, truth, covered, n = RNG(0), np.array([0.0, 0.1]), 0, 400
    labels = np.r_[np.arange(60) % 2, -1, 0]
    for _ in range(n):
        right = np.stack([rng.random(62) < 0.8 + truth[labels], rng.random(62) < 0.8])
        made = dataclasses.replace(PAIR, labels=labels, correct={"knn": right}, judged={"knn": labels >= 0})
        made.judged["knn"][-1] = False
        found = sorted(made.by_class("knn"), key=lambda d: d.label)  # from the largest difference down
        assert [d.n for d in found] == [30, 30]
        assert found[1].value == pytest.approx(found[1].accuracies[0] - found[1].accuracies[1])
        covered += sum(d.interval[0] <= t <= d.interval[1] for d, t in zip(found, truth, strict=True))
    assert 0.93 <= covered / (2 * n) <= 0.99
    assert made.n_judged == 60


def test_holm_corrects_for_the_number_of_tests() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def cka(x: np.ndarray, y: np.ndarray) -> float:
    return float(representation_similarity.ckas([x, y])[0, 1])


def test_cka_is_debiased_and_blind_to_turning_and_scaling() -> None:
    x = RNG(0).normal(size=(300, 20))
    turn = np.linalg.qr(RNG(1).normal(size=(20, 20)))[0]
    assert cka(x, 3 * x @ turn + 5) == pytest.approx(1)
    independent = [cka(x, RNG(s).normal(size=(300, 40))) for s in range(2, 12)]
    assert abs(np.mean(independent)) < 0.02  # the biased one gives about 0.12 here


def test_cka_equals_the_unbiased_hsic_written_out() -> None:
    x, y = RNG(0).normal(size=(30, 4)), RNG(1).normal(size=(30, 6))
    y[:, :4] += x

    def hsic(k, m):
        k, m = (v - np.diag(np.diag(v)) for v in (k, m))
        n, one = len(k), np.ones(len(k))
        total = np.trace(k @ m) + one @ k @ one * (one @ m @ one) / ((n - 1) * (n - 2))
        return (total - 2 / (n - 2) * one @ k @ m @ one) / (n * (n - 3))

    k, m = x @ x.T, y @ y.T
    expected = hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))
    assert cka(x, y) == pytest.approx(expected, rel=1e-6)


def test_similarity_by_blocks_is_that_of_all_rows(monkeypatch) -> None:
    x, y = RNG(0).normal(size=(300, 9)).astype(np.float32) + 5, RNG(1).normal(size=(300, 12))
    y[:, :9] += x
    similarity, distance = (f(x, y) for f in (cka, representation_similarity.procrustes))
    monkeypatch.setattr(representation_similarity, "BLOCK", 17 * 21)
    assert cka(x, y) == pytest.approx(similarity, abs=1e-6)
    assert representation_similarity.procrustes(x, y) == pytest.approx(distance, abs=1e-9)


def near(x: np.ndarray) -> np.ndarray:
    """The 5 rows (n, 5) nearest to each row by cosine."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return np.argsort(-(unit @ unit.T) + 9 * np.eye(len(x)), axis=1)[:, :5]


def test_chance_is_what_each_measure_gives_of_rows_in_another_order() -> None:
    x = RNG(0).normal(size=(60, 70)).astype(np.float32)
    y = (0.4 * x[:, :9] + RNG(1).normal(size=(60, 9))).astype(np.float32)
    found = representation_similarity.calibrate([x, y], [near(x), near(y)], orders=39)
    rng = RNG(0)
    rng.choice(60, 60, replace=False)
    orders = [rng.permutation(60) for _ in range(39)]
    measures = {
        "cka": cka,
        "overlap": lambda a, b: representation_similarity.overlaps([near(a), near(b)])[0, 1],
        "procrustes": lambda a, b: 1 - representation_similarity.procrustes(a, b),
    }
    for name, measure in measures.items():
        value, null = measure(x, y), np.array([measure(x, y[order]) for order in orders])
        limit = np.sort([value, *null])[37]  # 95 % of 40
        chance = 1 - limit if name == "procrustes" else limit
        assert found[f"chance:{name}"][0, 1] == pytest.approx(chance, abs=1e-5)
        assert found[f"p:{name}"][0, 1] == pytest.approx((1 + (null >= value).sum()) / 40)
        calibrated = max(0, (value - limit) / (1 - limit))
        assert found[f"calibrated:{name}"][1, 0] == pytest.approx(calibrated, abs=1e-5)


def test_equal_spaces_are_wholly_alike_and_independent_ones_not_beyond_chance(monkeypatch) -> None:
    parts = [RNG(s).normal(size=(50, 40)).astype(np.float32) for s in range(8)]
    found = representation_similarity.calibrate([*parts[:4], parts[0]], [*map(near, parts[:4]), near(parts[0])], 99)
    for name in representation_similarity.MEASURES:
        assert found[f"calibrated:{name}"][0, 4] == pytest.approx(1, abs=1e-5)
        assert found[f"p:{name}"][0, 4] == 0.01
        p = found[f"p:{name}"][np.triu_indices(4, 1)]
        assert (p > 0.05).sum() >= 4
        assert np.isnan(found[f"p:{name}"].diagonal()).all()
    monkeypatch.setattr(representation_similarity, "MOST", 30)  # chance of some of the rows is no smaller
    part = representation_similarity.calibrate(parts[:2], [*map(near, parts[:2])], 99)
    assert part["chance:cka"][0, 1] > found["chance:cka"][0, 1]
    assert part["chance:procrustes"][0, 1] < found["chance:procrustes"][0, 1]
    flat = np.ones((50, 3), np.float32)
    of_flat = representation_similarity.calibrate([parts[0], flat], [near(parts[0]), near(flat)], 19)
    assert np.isnan(of_flat["p:cka"][0, 1])


def test_the_command_gives_chance_as_json_without_nan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "simclr-digits", "sup_con-digits", "--json"]) == 0
    said = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert {name: matrix[0][0] for name, matrix in said["by_chance"].items()} == dict.fromkeys(said["by_chance"])
    assert said["by_chance"]["p:cka"][0][1] == pytest.approx(1 / 201)


def test_maps_are_turned_and_mirrored_onto_each_other() -> None:
    x = RNG(0).normal(size=(50, 2)).astype(np.float32)
    mirrored = (x * [1, -1] @ np.array([[0.6, 0.8], [-0.8, 0.6]]) * 3 + 7).astype(np.float32)
    np.testing.assert_allclose(representation_similarity.procrustes_align(mirrored, x), x, atol=1e-4)


def test_only_common_samples_are_compared() -> None:
    a, b = space(20, 0.1), space(20, 0.2)
    shared = comparison.common([a, b.take(np.arange(19, 4, -1))])
    assert shared[0].ids == shared[1].ids
    assert len(shared[0]) == 15
    other = EmbeddingSet(a.features, a.labels, tuple(f"x{i}" for i in range(20)))
    with pytest.raises(ValueError, match="no samples in common"):
        comparison.common([a, other])
    with pytest.raises(ValueError, match="two to 8"):
        comparison.common([a])
    twice = dataclasses.replace(a, ids=("x", *a.ids[1:19], "x"), provenance={"file": "b.csv"})
    with pytest.raises(ValueError, match=r"b\.csv contains the id 'x' 2 times"):
        comparison.common([a, twice])


def test_paired_intervals_hold_the_truth_as_often_as_they_say() -> None:
    inside = found = 0
    for seed in range(200):
        rng = RNG(seed)
        shared = rng.normal(size=150)
        a = shared + 0.3 + 0.5 * rng.normal(size=150)
        b = shared + 0.5 * rng.normal(size=150)
        scores = [{"purity": Score("Purity", value=x.mean(), arrays={"per_sample": x})} for x in (a, b)]
        (row,) = verdicts.paired_tests(["a", "b"], scores)
        inside += row.interval[0] < 0.3 < row.interval[1]
        found += row.p < 0.05
    assert 183 <= inside <= 199  # 95 % of 200, within three deviations
    assert found > 190  # the pairs share what would hide the difference


def test_a_score_is_tested_only_if_every_run_has_it() -> None:
    values = [RNG(seed).normal(size=50) for seed in range(3)]
    purity = [Score("Purity", value=x.mean(), arrays={"per_sample": x}) for x in values]
    knn = [Score("kNN accuracy", value=(x > 0).mean(), arrays={"per_sample": x > 0}) for x in values]
    scores = [{"purity": p, "knn": k} for p, k in zip(purity, knn, strict=True)]
    scores[0]["purity"] = Score("Purity", missing="no labels")
    assert [test.metric for test in verdicts.paired_tests(["a", "b", "c"], scores)] == ["knn"] * 3


@cases("name", ["uniformity", "tolerance", "purity", "silhouette"])
def test_the_influence_of_each_sample_gives_a_score_its_spread(name: str) -> None:
    values, spreads = [], []
    for seed in range(60):
        labels = RNG(seed).choice(3, 120, p=[0.6, 0.3, 0.1])
        x = (0.7 * RNG(seed + 99).normal(size=(120, 3)) + np.eye(3)[labels]).astype(np.float32)
        result = all_metrics.create(name)(None, EmbeddingSet(x, labels))
        own = result.arrays["influence"]
        values.append(result.value)
        spreads.append(own.std(ddof=1) / np.sqrt(len(own)))
        low, high = result.interval
        assert low < result.value < high
    assert np.mean(spreads) == pytest.approx(np.std(values, ddof=1), rel=0.3)


def test_wide_spaces_have_the_same_cka_and_constant_or_few_rows_have_none() -> None:
    parts = [RNG(s).normal(size=(40, 30)) for s in range(3)]
    wide = [np.pad(part, ((0, 0), (0, 30))) for part in parts]  # by the shorter side
    found = representation_similarity.ckas(parts)
    np.testing.assert_allclose(representation_similarity.ckas(wide), found, atol=1e-5)
    assert found.diagonal() == pytest.approx(1)
    assert np.isnan(representation_similarity.ckas([np.ones((5, 2)), np.eye(5)])[0, 1])
    assert np.isnan(representation_similarity.ckas([np.eye(3), np.eye(3)])).all()


def test_rows_that_were_not_judged_count_for_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    knn = type(all_metrics.create("knn"))
    monkeypatch.setattr(knn, "most", 100)
    monkeypatch.setattr(knn, "drawn", 60)
    train = [space(400, noise, split="train") for noise in (0.3, 0.9)]
    test = [space(300, noise, seed=1) for noise in (0.3, 0.9)]
    found = compare([Entry(n, a, b) for n, a, b in zip("ab", train, test, strict=True)])
    drawn = rows_of_sample(300, 60)
    expected = [float(found.correct["knn"][i, drawn].mean()) for i in (0, 1)]
    assert found.accuracy["knn"] == expected
    assert found.differences[0].value == pytest.approx(expected[0] - expected[1])
    assert found.made_of["knn"] == ["60 of 300 rows"] * 2
