"""How often intervals contain the truth, and how often a difference is claimed where there is none.

    python -m benchmarks.coverage [--simulations 500]

Each row is a statement of the app on one shape of simulated data, whose truth is known. A 95 % interval should contain
it in 93 to 99 % of simulations. A false "better" should come in at most 6 %. The last column says whether it does.

- **Settings**: four equal settings of three seeds each. Their accuracy on n images deviates between seeds.
- **Runs**: two runs that differ, or are alike, in who is right.
- **Audit**: a model says how likely each label is wrong, rightly, too sure, unsure, or blind to half of the wrong ones.
  A person checks random rows, and some suspects. The stop rule is looked at after each 60 checks; between two looks
  every other person decides on 30 more suspects, as long as many of the last 30 were wrong.
- **Scores**: a score's interval on rows drawn anew, against its mean over all draws; and paired tests of two encoders
  that are alike, whose rows of the same samples differ by chance alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import beta

from contrastive_core.base.score import INFLUENCE, Score, Scores, difference, wilson
from contrastive_core.compare import verdicts
from contrastive_core.compare.verdicts import Difference, SettingScores, paired_tests
from contrastive_core.metrics import MetricResult, create
from contrastive_core.samples.label_audit import audit, draw
from contrastive_core.spaces.embedding_set import EmbeddingSet

COVERS, FALSE, ECE = (0.93, 0.995), 0.06, 0.05
SETTINGS = ((2000, 0.035), (10_000, 0.02), (2000, 0.005))  # images, deviation between seeds
MODELS = {  # share of wrong labels, how far the model's logits are off, share of wrong ones that it does not see
    "5 % wrong": (0.05, 0.0, 0.0),
    "1 % wrong": (0.01, 0.0, 0.0),
    "20 % wrong, unsure": (0.2, -1.5, 0.0),
    "5 % wrong, too sure": (0.05, 1.5, 0.0),
    "5 % wrong, half unseen": (0.05, 0.0, 0.5),
    "15 % wrong, half unseen": (0.15, 0.0, 0.5),
    "5 % wrong, none seen": (0.05, 0.0, 1.0),
}
RUNS = {  # images, accuracy of two runs, correlation of what they find hard
    "300 images, 80 and 85 %": (300, 0.80, 0.85, 0.7),
    "2,000 images, 60 and 62 %": (2000, 0.60, 0.62, 0.9),
    "300 images, 98 and 99 %": (300, 0.98, 0.99, 0.5),
}
SCORES = ("purity", "silhouette", "neighbor_stability", "alignment", "tolerance", "uniformity")
TAUGHT: dict[str, dict[str, float]] = {"knn": {}, "linear_probe": {"c": 0.1}}  # by training rows, always the same
SHAPES = {  # sizes of classes, deviation of a row from its class
    "balanced": ((1, 1, 1, 1), 0.4),
    "long tail": ((20, 8, 3, 1), 0.4),
    "two classes": ((1, 1), 0.4),
    "40 classes": ((1,) * 40, 0.25),
}


def settings_rows(simulations: int, rng: np.random.Generator) -> Iterator[tuple[str, str, float, bool]]:
    """False claims about equal settings."""
    for n, deviation in SETTINGS:
        sweep = adviser = methods = inside = 0
        for _ in range(simulations):
            hard = rng.normal(size=n)
            made = [_setting(rng, str(i), deviation, hard) for i in range(4)]
            sweep += any(one.sign for one in verdicts.contrasts_of_best(made))
            adviser += any(verdicts.contrast(one, made[0], made, 3).sign for one in made[1:])
            pair = [(one.label, seed, right > 0.5) for one in made[:2] for seed, right in one.right.items()]
            groups, right = [(name, seed) for name, seed, _ in pair], np.stack([right for *_, right in pair])
            methods += "is better than" in verdicts.compare_methods(groups, right)
            low, high = verdicts.interval_and_basis(made[0])[0] or (0.0, 0.0)
            inside += low <= 0.8 <= high
        shape = f"{n:,} images, seeds ±{100 * deviation:.1f} points"
        for statement, count in (("sweep of four", sweep), ("adviser, three finalists", adviser), ("methods", methods)):
            yield f"{statement}: false better", shape, count / simulations, count / simulations <= FALSE
        share = inside / simulations
        yield "mean of a setting: coverage", shape, share, COVERS[0] <= share


def runs_rows(simulations: int, rng: np.random.Generator) -> Iterator[tuple[str, str, float, bool]]:
    """Coverage of an accuracy and of the difference between two runs; false claims about runs that are alike."""
    for shape, (n, one, two, alike) in RUNS.items():
        accuracies = differences = false = 0
        for _ in range(simulations):
            noisy = np.sqrt(alike) * rng.normal(size=n) + np.sqrt(1 - alike) * rng.normal(size=(3, n))
            right = noisy < ndtri([[one], [two], [two]])
            low, high = wilson(int(right[0].sum()), n)
            accuracies += low <= one <= high
            low, high = difference(right[0], right[1])[1]
            differences += low <= one - two <= high
            false += verdicts.compare_runs(["a", "b"], {"knn": right[1:]})[0].claimed
        for statement, count in (("accuracy", accuracies), ("difference of accuracies", differences)):
            yield f"{statement}: coverage", shape, count / simulations, COVERS[0] <= count / simulations <= COVERS[1]
        yield "two runs: false better", shape, false / simulations, false / simulations <= FALSE


def _setting(rng: np.random.Generator, label: str, deviation: float, hard: np.ndarray) -> SettingScores:
    """Three seeds of 80 % accuracy; images that are hard are hard for all."""
    made = SettingScores(label)
    for seed in range(3):
        share = np.clip(0.8 + deviation * rng.normal(), 0.02, 0.98)
        noisy = rng.normal(size=len(hard)) / 2 + hard
        right = (noisy < np.sqrt(1.25) * ndtri(share)).astype(float)
        made.scores[seed], made.right[seed] = float(right.mean()), right
    return made


def audit_rows(simulations: int, rng: np.random.Generator) -> Iterator[tuple[str, str, float, bool]]:
    """Coverage of the number of wrong labels, of the stop rule at any look, and the calibration after the audit."""
    for shape, (share, shift, unseen) in MODELS.items():
        inside, held, errors, widths, plain = 0, 0, [], [], []
        for seed in range(simulations):
            wrong = rng.random(3000) < share
            evidence = rng.normal(size=3000) + 3 * (wrong & (rng.random(3000) >= unseen))
            p = expit(logit(share) + 3 * evidence - 4.5 + shift)
            order, ranked = draw(np.array([f"{seed}/{i}" for i in range(3000)]), wrong >= 0)[:480], np.argsort(-p)
            found, y = _checked(p, wrong, order[:120], ranked[: 30 * (seed % 2)])
            inside += found.interval[0] <= wrong.sum() <= found.interval[1]
            widths.append(found.interval[1] - found.interval[0])
            plain.append(_exact_width(len(p), 120, int(wrong[:120].sum())))
            errors.append(_calibration(found.probability, wrong, ~np.isfinite(y)))
            held += _holds_at_each_look(p, wrong, order, ranked, seed)
        yield "wrong labels, 120 checks", shape, inside / simulations, COVERS[0] <= inside / simulations
        ratio = float(np.mean(widths) / np.mean(plain))
        yield "width beside an exact interval of 120 plain checks", shape, ratio, ratio <= 1
        yield "stop rule, every look", shape, held / simulations, held / simulations >= 0.95
        yield "calibration error, 120 checks", shape, float(np.mean(errors)), float(np.mean(errors)) <= ECE


def _holds_at_each_look(p: np.ndarray, wrong: np.ndarray, order: np.ndarray, ranked: np.ndarray, seed: int) -> bool:
    reach = 0
    for size in range(60, 481, 60):
        if seed % 2 and (not reach or wrong[ranked[reach - 30 : reach]].mean() > 0.3):
            reach += 30
        look, y = _checked(p, wrong, order[:size], ranked[:reach])
        if (wrong & ~np.isfinite(y)).mean() > look.bound:
            return False
    return True


def _exact_width(size: int, n: int, k: int) -> float:
    """Width of the exact (Clopper-Pearson) interval of the number, from n uniform checks of which k are wrong."""
    return size * float(beta.ppf(0.975, k + 1, n - k) - (beta.ppf(0.025, k, n - k + 1) if k else 0.0))


def _checked(p: np.ndarray, wrong: np.ndarray, drawn: np.ndarray, top: np.ndarray):  # type: ignore[no-untyped-def]
    y = np.full(len(p), np.nan)
    for rows in (drawn, top):
        y[rows] = wrong[rows]
    return audit(p, y, drawn), y


def _calibration(q: np.ndarray, wrong: np.ndarray, rest: np.ndarray) -> float:
    """Expected calibration error of the undecided rows, in ten bins of as many."""
    bins = np.array_split(np.flatnonzero(rest)[np.argsort(q[rest])], 10)
    return float(sum(len(b) * abs(q[b].mean() - wrong[b].mean()) for b in bins) / rest.sum())


def score_rows(simulations: int, rng: np.random.Generator) -> Iterator[tuple[str, str, float, bool]]:
    """Coverage of the intervals of scores, and false claims of their paired tests."""
    for shape, (sizes, spread) in SHAPES.items():
        shares = np.array(sizes) / sum(sizes)
        teachers = _rows(rng, rng.choice(len(shares), 400, p=shares), len(shares), spread)
        found: dict[str, list[tuple[float, ...]]] = {name: [] for name in (*SCORES, "views", *TAUGHT)}
        tests = []
        for _ in range(simulations):
            labels = rng.choice(len(shares), 300, p=shares)
            pair = [_rows(rng, labels, len(shares), spread) for _ in range(2)]
            views = np.stack([rows.features for rows in pair], 1)
            results = [{name: create(name)(None, rows) for name in SCORES} for rows in pair]
            results[0]["views"] = create("alignment")(None, EmbeddingSet(pair[0].features, views=views))
            results[0] |= {name: create(name, **knobs)(teachers, pair[0]) for name, knobs in TAUGHT.items()}
            for name, result in results[0].items():
                found[name].append((result.value, *(result.interval or (np.nan, np.nan))))
            tests.append(paired_tests(["a", "b"], [_tested(one) for one in results]))
        for name, values in found.items():
            value, low, high = np.array(values).T
            share = float(np.mean((low <= value.mean()) & (value.mean() <= high)))
            title = "alignment of views" if name == "views" else name.replace("_", " ")
            yield f"{title}: coverage", shape, share, COVERS[0] <= share <= COVERS[1]
        yield from _false_tests(shape, tests)


def _tested(results: dict[str, MetricResult]) -> Scores:
    """The value and the influences of each score that is compared by a test on these."""
    return {name: Score(name, value=r.value, arrays=r.arrays) for name, r in results.items() if INFLUENCE in r.arrays}


def _false_tests(shape: str, simulated: list[list[Difference]]) -> Iterator[tuple[str, str, float, bool]]:
    for name in dict.fromkeys(row.metric for row in simulated[0]):
        share = float(np.mean([row.p < 0.05 for rows in simulated for row in rows if row.metric == name]))
        yield f"{name}, two encoders: false difference", shape, share, share <= FALSE
    share = float(np.mean([any(row.p_corrected < 0.05 for row in rows) for rows in simulated]))
    yield "any of these, corrected: false difference", shape, share, share <= FALSE


def _rows(rng: np.random.Generator, labels: np.ndarray, classes: int, spread: float) -> EmbeddingSet:
    """Rows around the corners of a simplex."""
    width = max(16, classes)
    features = np.eye(classes, width)[labels] + spread * rng.normal(size=(len(labels), width))
    return EmbeddingSet(features.astype(np.float32), labels)


PARTS: dict[str, Callable[[int, np.random.Generator], Iterator[tuple[str, str, float, bool]]]] = {
    "Settings and methods, three seeds each": settings_rows,
    "Accuracies of single runs": runs_rows,
    "Audit of labels (95 % intervals)": audit_rows,
    "Scores (95 % intervals) and their paired tests": score_rows,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--simulations", type=int, default=500)
    options.add_argument("--part", choices=("settings", "runs", "audit", "scores"))
    given = options.parse_args()
    for title, part in PARTS.items():
        if given.part and not part.__name__.startswith(given.part.removesuffix("s")):
            continue
        print(f"\n{title}, {given.simulations} simulations\n\n| statement | data | share | holds |\n|---|---|---:|---|")
        for statement, shape, share, holds in part(given.simulations, np.random.default_rng(0)):
            print(f"| {statement} | {shape} | {share:.3f} | {'yes' if holds else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
