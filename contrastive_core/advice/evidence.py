"""What the adviser knows and answers: scores on the training images that it holds out, and one verdict.

The score is kNN on h, with the other training images as voters. Runs are scored, and references that need no training:
raw pixels, the largest class, untrained and frozen encoders.

For settings, the default wins unless a candidate is significantly better. For the question whether to train, the
cheapest option wins: training must beat raw pixels, the best frozen encoder, an untrained encoder and guessing the
largest class. All four are required, because one lucky comparison is not enough. If training beats all except the
frozen encoder, the answer is the frozen encoder. compare/verdicts.py holds the tests."""

import contextlib
import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contrastive_core import metrics
from contrastive_core.advice.plan import RESERVE, Candidate, Plan
from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, join, message
from contrastive_core.compare.embed import embed_run, raw_pixels, untrained_rows
from contrastive_core.compare.verdicts import Contrast, SettingScores, contrast
from contrastive_core.data.dataset import Dataset
from contrastive_core.data.overrides import take
from contrastive_core.runs.run import Run
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.neighbor_graphs import Graphs

SHARE, MOST, FEWEST = (0.2, 2000, 40)  # of the training images; images at most; images in all at least
SEED = 11
VOTERS = 50_000  # maximum number of voters for pixels and untrained encoders
PIXELS, UNTRAINED, CHANCE = N_("raw pixels"), N_("an untrained encoder"), N_("the largest class")
SCRATCH, CONTINUE = "scratch", "continue"
SAID = {
    "pixels": N_("Raw pixels are enough: no more expensive option was shown to be better."),
    "frozen": N_("The frozen encoder {encoder} is enough: training is not shown to be better."),
    CONTINUE: N_("Continue training {encoder}."),
    SCRATCH: N_("Train from scratch."),
}


def held_out_rows(dataset: Dataset) -> np.ndarray:
    """Return the sorted training rows to hold out, a fifth of each class. Raises BadSetting for too few images."""
    n = len(dataset)
    if n < FEWEST:
        values = {"name": dataset.name, "n": n, "fewest": FEWEST}
        raise BadSetting(
            "{name} has {n} training images; at least {fewest} are needed, because one fifth is held out", **values
        )
    rng, count, labels = np.random.default_rng(SEED), min(MOST, round(SHARE * n)), dataset.labels
    order, chosen = rng.permutation(n), []
    for label in np.unique(labels):
        rows = order[labels[order] == label]
        chosen.append(rows[: max(1, round(count * len(rows) / n)) if len(rows) > 1 else 0])
    return np.sort(np.concatenate(chosen))


def write_ids(path: Path, dataset: Dataset, rows: np.ndarray) -> None:
    """Write the ids of rows, one per line, in the format of `train --exclude`."""
    text = "".join(f"{dataset.ids[i]}\n" for i in rows)
    storage.write_bytes(path, text.encode("utf-8", "surrogateescape"))


def right_rows(every: EmbeddingSet, rows: np.ndarray, device: str = "auto") -> np.ndarray:
    """Return 1 where kNN on the other rows predicts a held-out row's class, else 0 (n); NaN without a label."""
    rest = every.take(np.setdiff1d(np.arange(len(every)), rows))
    right = metrics.create("knn")(rest, every.take(rows), Graphs(device)).per_sample
    assert right is not None
    return np.asarray(right, np.float64)


def score_run(run: Run, rows: np.ndarray, device: str = "auto") -> np.ndarray:
    """Return 1 where kNN on a finished run's h predicts a held-out image's class, else 0 (n); NaN without a label."""
    return right_rows(embed_run(run, "train", "h", device), rows, device)


# --- candidates that are tried -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """The correctness (n) of a run on the held-out images, or the reason why its training failed."""

    run: str
    right: np.ndarray | None = None
    seconds: float = 0.0  # of its training and scoring
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate and its scores by seed."""

    candidate: Candidate
    by_seed: dict[int, HeldOutScores] = field(default_factory=dict)

    @property
    def failure(self) -> str:
        """The reason why a training failed; "" if none failed."""
        return next((s.failure for s in self.by_seed.values() if s.failure), "")

    @property
    def scores(self) -> SettingScores:
        """The scores in the form that `verdicts` compares."""
        right = {seed: s.right for seed, s in sorted(self.by_seed.items()) if s.right is not None}
        return SettingScores(self.candidate.label, {seed: float(np.nanmean(r)) for seed, r in right.items()}, right)


def write_scores(folder: Path, scores: HeldOutScores) -> None:
    """Write the scores of a run for `read_scores`. An image without a label has the value null."""
    record: dict[str, str | float | list[float]] = {"seconds": scores.seconds, "failure": scores.failure}
    if scores.right is not None:
        record |= {"knn": float(np.nanmean(scores.right)), "right": scores.right.tolist()}
    json_files.write_json(folder / f"{scores.run}.json", record)


def read_scores(folder: Path, run: str) -> HeldOutScores | None:
    """Read the scores of a run; None if they are missing or damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        raw = json_files.read_object(folder / f"{run}.json")
        right = None if raw["failure"] else np.array(raw["right"], np.float64)
        return HeldOutScores(run=run, right=right, seconds=float(raw["seconds"]), failure=raw["failure"])
    return None


# --- what needs no training --------------------------------------------------------------------------


def fixed_scores(label: str, right: np.ndarray) -> SettingScores:
    """Return the scores of a reference without random numbers from its correct rows (n)."""
    return SettingScores(label, {0: float(np.nanmean(right))}, {0: right}, is_fixed=True)


def largest_class(dataset: Dataset, rows: np.ndarray) -> SettingScores:
    """Score the prediction of the most frequent class among the images that are not held out."""
    labels, rest = dataset.labels, np.delete(dataset.labels, rows)
    largest = np.bincount(rest[rest >= 0]).argmax()
    return fixed_scores(CHANCE, np.where(labels[rows] >= 0, labels[rows] == largest, np.nan))


class References:
    """Scores that need no training, with at most VOTERS of the images that are not held out as voters."""

    def __init__(self, dataset: Dataset, rows: np.ndarray, device: str = "auto") -> None:
        rest = np.setdiff1d(np.arange(len(dataset)), rows)
        if len(rest) > VOTERS:
            rest = np.random.default_rng(SEED).permutation(rest)[:VOTERS]
        chosen = np.sort(np.concatenate([rows, rest]))
        self.part = dataset if len(chosen) == len(dataset) else take(dataset, chosen)
        self.rows, self.device = np.searchsorted(chosen, rows), device

    def pixels(self) -> SettingScores:
        return fixed_scores(PIXELS, right_rows(raw_pixels(self.part), self.rows, self.device))

    def untrained(self, config: TrainConfig, seeds: Sequence[int]) -> SettingScores:
        """Score the untrained encoder with these settings, once per seed."""
        found, labels = SettingScores(UNTRAINED), np.asarray(self.part.labels, np.int64)
        for seed in seeds:
            features = untrained_rows(dataclasses.replace(config, seed=seed), self.part, self.device)
            rows = EmbeddingSet(features, labels, classes=self.part.classes)
            found.right[seed] = right_rows(rows, self.rows, self.device)
            found.scores[seed] = float(np.nanmean(found.right[seed]))
        return found


# --- the answer -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """The answer as a sentence. `chosen` is the label of the recommended candidate, "" while undecided."""

    sentence: str
    chosen: str = ""
    is_shown: bool = False
    comparisons: Sequence[Contrast] = ()


def decide_settings(trials: Sequence[Trial]) -> Verdict:
    """Choose the best settings that are significantly better than the default, else the default."""
    scored = [trial.scores for trial in trials if trial.scores.scores]
    if not trials[0].scores.scores:
        return Verdict(N_("No decisions yet."))
    default, *others = scored
    if not others:
        return Verdict(message("Only {label} has been judged so far.", label=default.label), default.label)
    repeated = sorted((one for one in others if one.is_repeated), key=lambda one: -one.mean)
    compared = repeated if default.is_repeated and repeated else [max(others, key=lambda one: one.mean)]
    found = [contrast(one, default, scored, len(compared)) for one in compared]
    best = next((one for one in found if one.sign > 0), None)
    said = N_("Keep the default, {label}.") if best is None else N_("Use {label}.")
    chosen = default.label if best is None else best.first
    parts = [message(said, label=chosen), (best or found[0]).sentence]
    return Verdict(sentence=join(" ", parts), chosen=chosen, is_shown=best is not None, comparisons=found)


def advice_to_train_longer(plan: Plan, trials: Sequence[Trial], references: Mapping[str, SettingScores]) -> str:
    """Say for which length of training the choice holds, and how long a longer search takes, if no training reaches
    the best score without training; else ""."""
    baseline = max(references.values(), key=lambda one: one.mean, default=None)
    made = [s.seconds for s in trials[0].by_seed.values() if not s.failure]
    best = max((trial.scores.mean for trial in trials if trial.scores.scores), default=0.0)
    if plan.is_start or baseline is None or not made or best >= baseline.mean:
        return ""
    epochs = plan.candidates[0].epochs
    more = plan.most if plan.most > epochs else 2 * epochs
    text = N_(
        "This is the choice for trainings of {epochs} epochs. None of them beats {baseline} ({share} %), so train for "
        "longer before you use the encoder. A search with {more} epochs takes about {minutes} min."
    )
    values = {"epochs": epochs, "baseline": baseline.label, "share": f"{100 * baseline.mean:.1f}", "more": more}
    minutes = math.ceil(plan.trainings(len(trials)) * max(made) * more / epochs / (60 * RESERVE))
    return message(text, **values, minutes=minutes)


def decide_start(
    trials: Sequence[Trial], references: Mapping[str, SettingScores], encoders: Sequence[SettingScores]
) -> Verdict:
    """Decide whether to train. The verdict is a sentence of SAID, or the reason why it is undecided."""
    planned = {name: t.scores for name, t in zip((SCRATCH, CONTINUE), trials, strict=False) if not t.failure}
    if lacking := [one.label for one in planned.values() if not one.is_repeated]:
        return Verdict(
            message("Not decided: these options do not have three seeds yet: {names}.", names=join("; ", lacking))
        )
    pixels, chance, untrained = (references[name] for name in ("pixels", "chance", "untrained"))
    frozen = max(encoders, key=lambda one: one.mean, default=None)
    rivals = [pixels, untrained, chance]
    tests = max(1, 2 * len(encoders) + (3 + bool(frozen)) * len(planned) + (len(planned) > 1))
    made: dict[tuple[str, str], Contrast] = {}

    def beats(a: SettingScores, b: SettingScores) -> bool:
        found = made[a.label, b.label] = contrast(a, b, [*planned.values(), untrained], tests)
        return found.sign > 0

    useful = [name for name, one in planned.items() if sum(beats(one, rival) for rival in rivals) == len(rivals)]
    wins = [name for name in useful if frozen is None or beats(planned[name], frozen)]
    answer = "pixels"
    if frozen is not None and (useful or (beats(frozen, pixels) and beats(frozen, chance))):
        answer = "frozen"
    if wins:  # of two, continue unless training from scratch is better
        is_scratch = len(wins) == 1 or beats(planned[SCRATCH], planned[CONTINUE])
        answer = wins[0] if is_scratch else CONTINUE
    own = {"pixels": pixels, "frozen": frozen, **planned}[answer]
    assert own is not None
    others = [one for one in (*planned.values(), *encoders, pixels) if one is not own]
    if answer in planned:
        others = [frozen if frozen is not None and frozen.mean > pixels.mean else pixels]
    parts = [message(SAID[answer], encoder=frozen.label if frozen else "")]
    if others:
        rival = max(others, key=lambda one: one.mean)
        if (rival.label, own.label) not in made:
            beats(own, rival)
        parts.append((made.get((rival.label, own.label)) or made[own.label, rival.label]).sentence)
    if not sum(beats(one, chance) for one in (pixels, *encoders, *planned.values())):
        text = N_(
            "No option is better than always guessing the largest class ({share} %). The images may not show "
            "what their labels say."
        )
        parts.append(message(text, share=f"{100 * chance.mean:.1f}"))
    return Verdict(sentence=join(" ", parts), chosen=own.label, is_shown=True, comparisons=list(made.values()))
