"""How often intervals contain the truth, and how often a difference is claimed where there is none.

    python -m benchmarks.coverage [--simulations 500]

Each row is a statement of the app on one shape of simulated data, whose truth is known. A 95 % interval should contain
it in 93 to 99 % of simulations. A false "better" should come in at most 6 %. The last column says whether it does.

- **Settings**: four equal settings of three seeds each. Their accuracy on n images deviates between seeds.
- **Audit**: a model says how likely each label is wrong, rightly, too sure, unsure, or blind to half of the wrong ones.
  A person checks random rows, and some suspects. The stop rule is looked at after each 60 checks; between two looks
  every other person decides on 30 more suspects, as long as many of the last 30 were wrong.
- **Scores**: a score's interval on rows drawn anew, against its mean over all draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit, logit, ndtri
from scipy.stats import beta

from contrastive_core.evaluation.verdicts import SettingScores, better_pairs, compare_runs, contrast
from contrastive_core.metrics import create
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.samples.label_audit import audit, draw

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
SCORES = ("purity", "silhouette", "alignment", "uniformity", "tolerance")
SHAPES = {"balanced": (1, 1, 1, 1), "long tail": (20, 8, 3, 1), "two classes": (1, 1)}


def settings_rows(simulations: int, rng: np.random.Generator) -> Iterator[tuple[str, str, float, bool]]:
    """False claims about equal settings."""
    for n, deviation in SETTINGS:
        sweep = adviser = runs = 0
        for _ in range(simulations):
            hard = rng.normal(size=n)
            made = [_setting(rng, str(i), deviation, hard) for i in range(4)]
            sweep += bool(better_pairs(made))
            adviser += any(contrast(one, made[0], made, 3).sign for one in made[1:])
            one, two = (_setting(rng, name, 0.0, hard).right[0] > 0.5 for name in "ab")
            runs += compare_runs(["a", "b"], {"knn": np.stack([one, two])})[0].claimed
        shape = f"{n:,} images, seeds ±{100 * deviation:.1f} points"
        for statement, count in (("sweep of four", sweep), ("adviser, three finalists", adviser), ("two runs", runs)):
            yield statement, shape, count / simulations, count / simulations <= FALSE


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
            order, ranked = draw(p, 480, seed), np.argsort(-p)
            found, y = _checked(p, wrong, order[:120], ranked[: 30 * (seed % 2)], seed)
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
        look, y = _checked(p, wrong, order[:size], ranked[:reach], seed)
        if (wrong & ~np.isfinite(y)).mean() > look.bound:
            return False
    return True


def _exact_width(size: int, n: int, k: int) -> float:
    """Width of the exact (Clopper-Pearson) interval of the number, from n uniform checks of which k are wrong."""
    return size * float(beta.ppf(0.975, k + 1, n - k) - (beta.ppf(0.025, k, n - k + 1) if k else 0.0))


def _checked(p: np.ndarray, wrong: np.ndarray, drawn: np.ndarray, top: np.ndarray, seed: int):  # type: ignore[no-untyped-def]
    y = np.full(len(p), np.nan)
    for rows in (drawn, top):
        y[rows] = wrong[rows]
    return audit(p, y, drawn, seed), y


def _calibration(q: np.ndarray, wrong: np.ndarray, rest: np.ndarray) -> float:
    """Expected calibration error of the undecided rows, in ten bins of as many."""
    bins = np.array_split(np.flatnonzero(rest)[np.argsort(q[rest])], 10)
    return float(sum(len(b) * abs(q[b].mean() - wrong[b].mean()) for b in bins) / rest.sum())


def score_rows(simulations: int, rng: np.random.Generator) -> Iterator[tuple[str, str, float, bool]]:
    """Coverage of the intervals of scores."""
    for shape, weights in SHAPES.items():
        for name in SCORES:
            values, intervals = [], []
            for _ in range(simulations):
                result = create(name)(None, _rows(rng, np.array(weights) / sum(weights), name))
                values.append(result.value)
                intervals.append(result.interval)
            if None in intervals:
                continue
            truth = float(np.mean(values))
            share = float(np.mean([low <= truth <= high for low, high in intervals]))
            yield name, shape, share, COVERS[0] <= share <= COVERS[1]


def _rows(rng: np.random.Generator, shares: np.ndarray, name: str, n: int = 300) -> EmbeddingSet:
    labels = rng.choice(len(shares), n, p=shares)
    centers = np.eye(len(shares), 16)
    features = (centers[labels] + 0.4 * rng.normal(size=(n, 16))).astype(np.float32)
    views = None
    if name == "alignment":
        views = np.stack([features + 0.2 * rng.normal(size=features.shape) for _ in range(2)], 1).astype(np.float32)
    return EmbeddingSet(features, labels, tuple(map(str, range(n))), views=views)


PARTS: dict[str, Callable[[int, np.random.Generator], Iterator[tuple[str, str, float, bool]]]] = {
    "A difference is claimed where there is none (at most 6 %)": settings_rows,
    "Audit of labels (95 % intervals)": audit_rows,
    "Scores (95 % intervals)": score_rows,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--simulations", type=int, default=500)
    options.add_argument("--part", choices=("settings", "audit", "scores"))
    given = options.parse_args()
    for title, part in PARTS.items():
        if given.part and not part.__name__.startswith(given.part.removesuffix("s")):
            continue
        print(f"\n{title}, {given.simulations} simulations\n\n| statement | data | share | holds |\n|---|---|---:|---|")
        for statement, shape, share, holds in part(given.simulations, np.random.default_rng(0)):
            print(f"| {statement} | {shape} | {share:.3f} | {'yes' if holds else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
