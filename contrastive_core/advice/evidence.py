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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contrastive_core import metrics, runs
from contrastive_core.advice.plan import (
    NO_TIME,
    RESERVE,
    Answer,
    AnswerRow,
    Candidate,
    ClassChange,
    ClassChanges,
    Plan,
    trainings,
)
from contrastive_core.base import json_files, storage
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.memory import read_npz, write_npz
from contrastive_core.base.messages import N_, join, message, sentence
from contrastive_core.base.progress import OnProgress
from contrastive_core.base.score import holm, t_test
from contrastive_core.compare.embed import embed_run, raw_pixels, untrained_rows
from contrastive_core.compare.verdicts import ALPHA, Contrast, SettingScores, contrast, interval_and_basis
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
CLASSES = 3  # number of classes listed as gaining or losing most
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


class References:
    """Scores that need no training, computed on demand and cached in the adviser's folder."""

    def __init__(self, dataset: Dataset, rows: np.ndarray, folder: Path, device: str = "auto") -> None:
        self.dataset, self.rows, self.folder, self.device = dataset, rows, folder, device
        self.failed: dict[str, str] = {}  # why a frozen encoder could not be scored, by run
        rest = np.setdiff1d(np.arange(len(dataset)), rows)
        if len(rest) > VOTERS:
            rest = np.random.default_rng(SEED).permutation(rest)[:VOTERS]
        self._chosen = np.sort(np.concatenate([rows, rest]))

    def pixels(self) -> SettingScores:
        return self._kept("pixels", PIXELS, raw_pixels)

    def chance(self) -> SettingScores:
        """Score the prediction of the most frequent class among the images that are not held out."""
        labels = self.dataset.labels
        rest = np.delete(labels, self.rows)
        largest = np.bincount(rest[rest >= 0]).argmax()
        return _fixed(CHANCE, np.where(labels[self.rows] >= 0, labels[self.rows] == largest, np.nan))

    def untrained(self, config: TrainConfig, seeds: Sequence[int]) -> SettingScores:
        """Score the untrained encoder with these settings, once per seed."""
        found = SettingScores(UNTRAINED)
        for seed in seeds:

            def embed(part: Dataset, seed: int = seed) -> EmbeddingSet:
                features = untrained_rows(dataclasses.replace(config, seed=seed), part, self.device)
                return EmbeddingSet(features, np.asarray(part.labels, np.int64), classes=part.classes)

            made = self._kept(f"untrained-{config.method}-{seed}", UNTRAINED, embed)
            found.scores[seed], found.right[seed] = made.mean, made.right[0]
        return found

    def frozen(self, names: Sequence[str], on_progress: OnProgress) -> dict[str, SettingScores]:
        """Score the frozen encoders of runs by name. Runs that fail are left out; `failed` holds the reasons."""
        found = {}
        for name in names:
            try:
                on_progress(message("embedding {name}", name=name), None)
                found[name] = _fixed(name, score_run(runs.load(name), self.rows, self.device))
            except (ValueError, OSError, RuntimeError) as error:
                self.failed[name] = sentence(error)
        return found

    def _kept(self, name: str, label: str, embed: Callable[[Dataset], EmbeddingSet]) -> SettingScores:
        path = self.folder / "references" / f"{name}-{self.dataset.fingerprint[:16]}.npz"
        with contextlib.suppress(OSError, ValueError, KeyError):
            right = read_npz(path)["right"].astype(np.float64)
            if len(right) == len(self.rows):
                return _fixed(label, right)
        part = self.dataset if len(self._chosen) == len(self.dataset) else take(self.dataset, self._chosen)
        right = right_rows(embed(part), np.searchsorted(self._chosen, self.rows), self.device)
        write_npz(path, right=right.astype(np.float32))
        return _fixed(label, right)


def _fixed(label: str, right: np.ndarray) -> SettingScores:
    return SettingScores(label, {0: float(np.nanmean(right))}, {0: right}, is_fixed=True)


# --- the answer -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """Scores on the held-out images: of each candidate (the default first), of the references by name (raw pixels, the
    largest class, an untrained encoder), and of each frozen encoder."""

    trials: Sequence[Trial]
    references: Mapping[str, SettingScores]
    frozen: Sequence[SettingScores] = ()

    @property
    def scored(self) -> list[SettingScores]:
        """Scores of the candidates that have any, the default first."""
        return [t.scores for t in self.trials if t.scores.scores]

    @property
    def default(self) -> SettingScores | None:
        """Scores of the default; None if it has none."""
        scores = self.trials[0].scores
        return scores if scores.scores else None


@dataclass(frozen=True)
class Verdict:
    """The answer as a sentence. `chosen` is the label of the recommended candidate, "" while undecided."""

    sentence: str
    chosen: str = ""
    is_shown: bool = False
    comparisons: Sequence[Contrast] = ()


def answer_of(plan: Plan, evidence: Evidence, failed: Mapping[str, str], dataset: Dataset, rows: np.ndarray) -> Answer:
    """Build the answer from the evidence so far. `rows` are the held-out rows; `failed` holds reasons by label."""
    found = decide_start(evidence) if plan.is_start else decide_settings(evidence)
    verdict = join(" ", [found.sentence, *_below_baseline(plan, evidence)])
    tried = [_row(t.scores, found.chosen, t) for t in evidence.trials if t.scores.scores]
    most = max((row["seeds"] for row in tried), default=0)
    tried.sort(key=lambda row: (row["seeds"] < most, -row["mean"]))
    references = [_row(one, found.chosen) for one in (*evidence.references.values(), *evidence.frozen)]
    untried = [t.candidate.label for t in evidence.trials if not t.by_seed]
    return {
        "plan": plan.to_dict(),
        "rows": tried,
        "references": sorted(references, key=lambda row: -row["mean"]),
        "verdict": verdict,
        "is_shown": found.is_shown,
        "comparisons": [one.sentence for one in found.comparisons],
        "recommended": next((row for row in tried if row["is_chosen"]), None),
        "untried": [*untried, *(label for label, why in plan.left_out.items() if why == NO_TIME)],
        "failed": dict(failed),
        "classes": _class_changes(evidence, dataset.labels[rows], dataset.classes),
        "test": "",
        "done": False,
    }


def _row(scores: SettingScores, chosen: str, trial: Trial | None = None) -> AnswerRow:
    """Build the answer's row for a candidate or a reference. References without random numbers have 0 seeds."""
    interval, basis = interval_and_basis(scores)
    it = trial.candidate if trial else Candidate(label=scores.label)
    made = [s for s in trial.by_seed.values() if not s.failure] if trial else []
    return {
        "label": scores.label,
        "settings": it.settings,
        "is_default": trial is not None and it.is_default,
        "is_chosen": scores.label == chosen,
        "value": it.value,
        "epochs": it.epochs,
        "seeds": 0 if scores.is_fixed else len(scores.scores),
        "values": list(scores.scores.values()),
        "mean": scores.mean,
        "interval": interval,
        "basis": basis,
        "seconds": math.fsum(s.seconds for s in made) / max(1, len(made)),
        "runs": [s.run for s in made],
    }


def decide_settings(evidence: Evidence) -> Verdict:
    """Choose the best settings that are significantly better than the default, else the default."""
    default, others = evidence.default, evidence.scored[1:]
    if default is None:
        return Verdict(N_("No decisions yet."))
    if not others:
        return Verdict(message("Only {label} has been judged so far.", label=default.label), default.label)
    repeated = sorted((one for one in others if one.is_repeated), key=lambda one: -one.mean)
    compared = repeated if default.is_repeated and repeated else [max(others, key=lambda one: one.mean)]
    found = [contrast(one, default, evidence.scored, len(compared)) for one in compared]
    best = next((one for one in found if one.sign > 0), None)
    said = N_("Keep the default, {label}.") if best is None else N_("Use {label}.")
    chosen = default.label if best is None else best.first
    parts = [message(said, label=chosen), (best or found[0]).sentence]
    return Verdict(sentence=join(" ", parts), chosen=chosen, is_shown=best is not None, comparisons=found)


def _below_baseline(plan: Plan, evidence: Evidence) -> list[str]:
    """Say for which length of training the choice holds, and how long a longer search takes, if no training reaches
    the best score without training."""
    baseline = max(evidence.references.values(), key=lambda one: one.mean, default=None)
    made = [s.seconds for s in evidence.trials[0].by_seed.values() if not s.failure]
    if plan.is_start or baseline is None or not made or max(one.mean for one in evidence.scored) >= baseline.mean:
        return []
    epochs = plan.candidates[0].epochs
    more = plan.most if plan.most > epochs else 2 * epochs
    each = max(made) * more / epochs
    text = N_(
        "This is the choice for trainings of {epochs} epochs. None of them beats {baseline} ({share} %), so train for "
        "longer before you use the encoder. A search with {more} epochs takes about {minutes} min."
    )
    values = {"epochs": epochs, "baseline": baseline.label, "share": f"{100 * baseline.mean:.1f}", "more": more}
    minutes = math.ceil(trainings(len(evidence.trials)) * each / (60 * RESERVE))
    return [message(text, **values, minutes=minutes)]


def decide_start(evidence: Evidence) -> Verdict:
    """Decide whether to train. The verdict is a sentence of SAID, or the reason why it is undecided."""
    trials = dict(zip((SCRATCH, CONTINUE), evidence.trials, strict=False))
    planned = {name: t.scores for name, t in trials.items() if not t.failure}
    if lacking := [one.label for one in planned.values() if not one.is_repeated]:
        return Verdict(
            message("Not decided: these options do not have three seeds yet: {names}.", names=join("; ", lacking))
        )
    pixels, chance, untrained = (evidence.references[name] for name in ("pixels", "chance", "untrained"))
    frozen = max(evidence.frozen, key=lambda one: one.mean, default=None)
    rivals = [pixels, untrained, chance]
    tests = max(1, 2 * len(evidence.frozen) + (3 + bool(frozen)) * len(planned) + (len(planned) > 1))
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
    others = [one for one in (*planned.values(), *evidence.frozen, pixels) if one is not own]
    if answer in planned:
        others = [frozen if frozen is not None and frozen.mean > pixels.mean else pixels]
    parts = [message(SAID[answer], encoder=frozen.label if frozen else "")]
    if others:
        rival = max(others, key=lambda one: one.mean)
        if (rival.label, own.label) not in made:
            beats(own, rival)
        parts.append((made.get((rival.label, own.label)) or made[own.label, rival.label]).sentence)
    if not sum(beats(one, chance) for one in (pixels, *evidence.frozen, *planned.values())):
        text = N_(
            "No option is better than always guessing the largest class ({share} %). The images may not show "
            "what their labels say."
        )
        parts.append(message(text, share=f"{100 * chance.mean:.1f}"))
    return Verdict(sentence=join(" ", parts), chosen=own.label, is_shown=True, comparisons=list(made.values()))


def _class_changes(evidence: Evidence, labels: np.ndarray, classes: Sequence[str]) -> ClassChanges:
    """Find the classes that gain and lose most with the best candidate (t-tests over images, Holm-corrected)."""
    default, others = evidence.default, evidence.scored[1:]
    if default is None or not others:
        return {}
    most = max(len(one.scores) for one in others)
    best = max((one for one in others if len(one.scores) == most), key=lambda one: one.mean)
    gain = np.mean(list(best.right.values()), 0) - np.mean(list(default.right.values()), 0)  # (n)
    changes = [(name, gain[labels == number]) for number, name in enumerate(classes)]
    changes = [(name, change) for name, change in changes if len(change) > 1]
    corrected = holm([t_test(change, float(change.mean())) for _, change in changes])
    found: list[ClassChange] = [
        {"class": name, "change": float(change.mean()), "n": len(change)}
        for (name, change), p in zip(changes, corrected, strict=True)
        if p < ALPHA
    ]
    found.sort(key=lambda row: -row["change"])
    gains, losses = [r for r in found if r["change"] > 0], [r for r in found[::-1] if r["change"] < 0]
    return {"best": [{"label": best.label}], "gain": gains[:CLASSES], "lose": losses[:CLASSES]}
