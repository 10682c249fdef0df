"""The search: every candidate is trained with one seed, the default and the best two others with three.

Each training is a sweep cell, scored on the held-out images. Its run is named after its settings, so nothing is
trained twice and a stopped adviser can continue."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable

import numpy as np

from contrastive_core import metrics, runs
from contrastive_core.advice.evidence import (
    HeldOutScores,
    References,
    Trial,
    advice_to_train_longer,
    decide_settings,
    decide_start,
    fixed_scores,
    held_out_rows,
    largest_class,
    read_scores,
    score_run,
    write_ids,
    write_scores,
)
from contrastive_core.advice.plan import (
    FINALISTS,
    NO_TIME,
    OVERHEAD,
    SEEDS,
    Answer,
    AnswerRow,
    Candidate,
    Plan,
    adviser_names,
    folder_of,
    lock_of,
    read_answer,
    save_plan,
)
from contrastive_core.base import json_files
from contrastive_core.base.errors import CannotGoOn
from contrastive_core.base.lock import lock
from contrastive_core.base.messages import N_, join, message, sentence
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.compare.embed import embed_run
from contrastive_core.compare.verdicts import SettingScores, contrast, interval_and_basis
from contrastive_core.data import datasets
from contrastive_core.data.datasets import Dataset
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.sweeps.sweep_file import Cell, config_of
from contrastive_core.sweeps.training import seconds_per_epoch, train_cell

FEWEST = 2  # candidates tried regardless of the time: the default and one other


def advise(
    plan: Plan, on_progress: OnProgress = ignore_progress, wait_for_device: Callable[[str], None] = lambda device: None
) -> Answer:
    """Run the adviser and return its answer, which is also written into its folder after each scored run.

    Args: wait_for_device: called before each training. Raises: Locked if another process runs this adviser;
        CannotGoOn if a run was stopped."""
    folder = folder_of(plan.name)
    with lock(lock_of(plan.name)):
        search = Search(plan, datasets.load(plan.dataset, "train", plan.root), on_progress, wait_for_device)
        search.run(lambda search: json_files.write_json(folder / "answer.json", search.answer()))
        answer = search.answer()
        if not plan.is_start and answer["recommended"] is not None:
            on_progress(N_("the test images, once"), 0.99)
            answer["test"] = search.test_sentence()
        answer["done"] = True
        json_files.write_json(folder / "answer.json", answer)
    return answer


class Search:
    """The trials of an adviser. `run` may be called again after an interruption."""

    def __init__(
        self,
        plan: Plan,
        dataset: Dataset,
        on_progress: OnProgress = ignore_progress,
        wait_for_device: Callable[[str], None] = lambda device: None,
    ) -> None:
        self.plan, self.dataset, self.on_progress, self.wait_for_device = plan, dataset, on_progress, wait_for_device
        self.folder = folder_of(plan.name)
        self.rows = held_out_rows(dataset)
        self.beside = 0.0  # seconds for the references
        self.trials = [self.trial(one) for one in plan.candidates]
        self.references: dict[str, SettingScores] = {}
        self.frozen: dict[str, SettingScores] = {}
        self.failures: dict[str, str] = {}  # of frozen encoders, by the names of their runs

    def run(self, on_scored: Callable[["Search"], None] = lambda search: None) -> None:
        """Try candidates until all are tried or the time is used up. Raises CannotGoOn if a run is stopped."""
        began = time.monotonic()
        save_plan(self.plan)
        write_ids(self.folder / "held_out.txt", self.dataset, self.rows)
        self._judge_references()
        self.beside = time.monotonic() - began
        on_scored(self)
        later = (len(SEEDS) - 1) * min(len(self.trials), FINALISTS + 1)
        for number, trial in enumerate(self.trials):
            if number < FEWEST or self._has_time_for(1 + later):
                self._score(trial, SEEDS[0], on_scored)
        for seed in SEEDS[1:]:
            for trial in self.finalists():
                if self._has_time_for(1):
                    self._score(trial, seed, on_scored)

    def finalists(self) -> list[Trial]:
        """Return the default and the best other candidates by the first seed."""
        known = [t for t in self.trials if SEEDS[0] in t.scores.scores]
        others = sorted((t for t in known if not t.candidate.is_default), key=lambda t: -t.scores.scores[SEEDS[0]])
        return [*(t for t in known if t.candidate.is_default), *others[:FINALISTS]]

    def answer(self) -> Answer:
        """Return the answer so far."""
        plan, trials, frozen = self.plan, self.trials, list(self.frozen.values())
        found = decide_start(trials, self.references, frozen) if plan.is_start else decide_settings(trials)
        longer = advice_to_train_longer(plan, trials, self.references)
        rows = [answer_row(t.scores, found.chosen, t) for t in trials if t.scores.scores]
        most = max((row["seeds"] for row in rows), default=0)
        rows.sort(key=lambda row: (row["seeds"] < most, -row["mean"]))
        references = [answer_row(one, found.chosen) for one in (*self.references.values(), *frozen)]
        untried = [t.candidate.label for t in trials if not t.by_seed]
        return {
            "plan": plan.to_dict(),
            "rows": rows,
            "references": sorted(references, key=lambda row: -row["mean"]),
            "verdict": join(" ", [found.sentence, *filter(None, [longer])]),
            "is_shown": found.is_shown,
            "comparisons": [one.sentence for one in found.comparisons],
            "recommended": next((row for row in rows if row["is_chosen"]), None),
            "untried": [*untried, *(label for label, why in plan.left_out.items() if why == NO_TIME)],
            "failed": {t.candidate.label: t.failure for t in trials if t.failure} | self.failures,
            "test": "",
            "done": False,
        }

    @property
    def spent(self) -> float:
        """Seconds of all runs, including those before a restart."""
        return sum(s.seconds for t in self.trials for s in t.by_seed.values())

    def _has_time_for(self, count: int) -> bool:
        """Return whether the remaining time is enough for `count` trainings, estimated from the earlier ones."""
        took = [s.seconds for t in self.trials for s in t.by_seed.values() if not s.failure]
        each = sum(took) / len(took) if took else self.plan.seconds + OVERHEAD
        return self.beside + self.spent + count * each <= self.plan.budget

    def _judge_references(self) -> None:
        """Score the references. For the question "start", also plan to continue from the best frozen encoder."""
        plan = self.plan
        made = References(self.dataset, self.rows, plan.device)
        self.on_progress(N_("raw pixels"), None)
        self.references = {"pixels": made.pixels()}
        self.on_progress(N_("the untrained encoder"), None)
        seeds = SEEDS if plan.is_start else SEEDS[:1]
        self.references["untrained"] = made.untrained(self._config(Candidate(label="")), seeds)
        if not plan.is_start:
            return
        self.references["chance"] = largest_class(self.dataset, self.rows)
        for name in plan.frozen:
            try:
                self.on_progress(message("embedding {name}", name=name), None)
                self.frozen[name] = fixed_scores(name, score_run(runs.load(name), self.rows, plan.device))
            except (ValueError, OSError, RuntimeError) as error:
                self.failures[name] = sentence(error)
        if not self.frozen or len(plan.candidates) > 1:
            return
        best = max(self.frozen, key=lambda name: self.frozen[name].mean)
        try:  # to continue from its encoder, for as long as training from scratch takes
            config, label = runs.load(best).config, message("training continued from {name}", name=best)
            settings: dict[str, object] = {"start": best, "encoder": config["encoder"]}
            settings |= {f"encoder.{k}": v for k, v in (config.get("encoder_knobs") or {}).items()}
            going_on = Candidate(label=label, settings=settings, epochs=plan.candidates[0].epochs)
            self.on_progress(N_("timing a few steps"), None)
            with contextlib.suppress(CannotGoOn, ValueError, OSError, RuntimeError):  # the training reports the error
                epochs = int(plan.seconds / seconds_per_epoch(self._config(going_on)))
                going_on = dataclasses.replace(going_on, epochs=max(1, epochs))
        except (ValueError, OSError) as error:  # it cannot be trained on these images
            self.failures[best] = sentence(error)
            return
        self.plan = dataclasses.replace(plan, candidates=(*plan.candidates, going_on))
        save_plan(self.plan)
        self.trials.append(self.trial(going_on))

    def trial(self, candidate: Candidate) -> Trial:
        """Return the trial of a candidate with its existing scores."""
        found = Trial(candidate)
        for seed in SEEDS:
            if (scores := read_scores(self.folder / "scores", self.cell(candidate, seed).run)) is not None:
                found.by_seed[seed] = scores
        return found

    def _score(self, trial: Trial, seed: int, on_scored: Callable[["Search"], None]) -> None:
        """Train and score a candidate unless it already has a score for this seed or has failed."""
        if seed in trial.by_seed or trial.failure:
            return
        it = trial.candidate
        text = message("{label}, epochs: {epochs}, seed {seed}", label=it.label, epochs=it.epochs, seed=seed)
        self.on_progress(text, min(0.99, self.spent / self.plan.budget))
        trial.by_seed[seed] = self.train_and_score(self.cell(it, seed))
        write_scores(self.folder / "scores", trial.by_seed[seed])
        on_scored(self)

    def train_and_score(self, cell: Cell) -> HeldOutScores:
        self.wait_for_device(self.plan.device)
        started, right = time.monotonic(), None
        failure = train_cell(cell, self.plan.device)
        if not failure:
            right = score_run(runs.load(cell.run), self.rows, self.plan.device)
        return HeldOutScores(run=cell.run, right=right, seconds=time.monotonic() - started, failure=failure)

    def cell(self, candidate: Candidate, seed: int) -> Cell:
        """Return the sweep cell of a candidate. Candidates with equal settings share a run."""
        settings: dict[str, object] = {**self.plan.settings, "epochs": candidate.epochs, "snapshot_every": 0}
        settings |= {"exclude": str(self.folder / "held_out.txt"), **candidate.settings}
        run = f"{self.plan.name}-{candidate.key}-e{candidate.epochs}-s{seed}"
        return Cell(run, {"setting": candidate.label}, settings, seed)

    def _config(self, candidate: Candidate) -> TrainConfig:
        cell = self.cell(dataclasses.replace(candidate, epochs=1), SEEDS[0])
        return dataclasses.replace(config_of(cell), device=self.plan.device)

    # --- the test images -------------------------------------------------------------------------

    def test_sentence(self) -> str:
        """Compare the default with the best candidate on the test images by kNN over all their seeds, in words."""
        others = [read_answer(name) for name in adviser_names() if name != self.plan.name]
        # comparing several advisers is a selection on these test images
        looks = 1 + sum(bool(one and one["test"] and one["plan"]["dataset"] == self.plan.dataset) for one in others)
        default, *rest = self.finalists()
        best = sorted(rest, key=lambda t: (-len(t.scores.scores), -t.scores.mean))[:1]
        found, figures = [], []
        for trial in (default, *best):
            runs_by_seed = {seed: s.run for seed, s in trial.by_seed.items() if not s.failure}
            right = {seed: score_test_images(run, self.plan.device) for seed, run in runs_by_seed.items()}
            scores = {seed: float(np.nanmean(one)) for seed, one in right.items()}
            found.append(SettingScores(trial.candidate.label, scores, right))
            figures.append(message("{label} {value} %", label=found[-1].label, value=f"{100 * found[-1].mean:.1f}"))
        text = N_("On the test images (evaluation number {looks}), by kNN: {figures}.")
        said = message(text, looks=looks, figures=join(", ", figures))
        return join(" ", [said, contrast(found[1], found[0]).sentence]) if best else said


def answer_row(scores: SettingScores, chosen: str, trial: Trial | None = None) -> AnswerRow:
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


def score_test_images(name: str, device: str = "auto") -> np.ndarray:
    """Return whether kNN on h predicts the class of each test image of a run (n)."""
    run = runs.load(name)
    train, test = (embed_run(run, split, "h", device) for split in ("train", "test"))
    right = metrics.create("knn")(train, test).per_sample
    assert right is not None
    return right
