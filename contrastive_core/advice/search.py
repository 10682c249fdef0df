"""The search: settings are trained as cells of a sweep, scored on held-out images, and halved.

Each round trains its settings from the start, with a schedule as long as the round: a run that was cut off in the
middle of its schedule says little about its end. A setting goes on to the next round if it is among the best third so
far (asynchronous successive halving: Li et al. 2020, arXiv 1810.05934). A cell's run is named after its settings, so
that nothing is trained twice, and an adviser that was stopped goes on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import shlex
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from contrastive_core.advice import held_out
from contrastive_core.advice.candidates import Candidate, Curve, candidates, fit_curve, next_on_curve, spread
from contrastive_core.advice.held_out import HeldOutScores, Trial, read_trials, trial_of, write_scores
from contrastive_core.advice.planning import RESERVE, SPREAD
from contrastive_core.data.datasets import Dataset
from contrastive_core.errors import CannotGoOn, Locked
from contrastive_core.messages import N_, message, sentence
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records import runs
from contrastive_core.records.advice import ETA, FINALISTS, OVERHEAD, Plan, folder_of, save_plan
from contrastive_core.records.advice_answer import Decision, Regime
from contrastive_core.records.run import Run
from contrastive_core.records.sweep_grid import Cell, config_of
from contrastive_core.records.train_config import from_dict
from contrastive_core.storage.json_files import JsonObject
from contrastive_core.training import loop
from contrastive_core.training.setup import manifest_of, prepare

FEWEST = 2  # settings that are tried whatever the clock says: the default, and one to compare
WIDER = 2  # times the settings that were planned, at most, where time is left

Questions = Mapping[str, Sequence[Candidate]]


class Search:
    """An adviser's trials. `run` may be called again after whatever ended it."""

    def __init__(self, plan: Plan, dataset: Dataset, on_progress: OnProgress = ignore_progress) -> None:
        self.plan, self.dataset, self.on_progress = plan, dataset, on_progress
        self.folder = folder_of(plan.name)
        self.rows = held_out.held_out_rows(dataset)
        self.questions = {q: candidates(q, plan.method, dataset, plan.methods) for q in plan.choose}
        self.trials: dict[str, Trial] = {}
        self.baselines: dict[str, float] = {}  # kNN without any training
        self.beside = 0.0  # seconds that reading the images and the baselines took, which count too
        self.on_scored: Callable[[Search], None] = lambda search: None
        self.wait_for_device: Callable[[str], None] = lambda device: None

    def run(self, on_scored: Callable[[Search], None] = lambda search: None) -> None:
        """Try settings until the time is used up. Raises CannotGoOn when a run is stopped."""
        self.on_scored = on_scored
        self.prepare()
        self.trials = read_trials(self.folder / "scores")
        for choice in self._choices():
            trial = trial_of(choice)
            if trial.key not in self.trials and len(self.trials) >= FEWEST and not self._has_time_for_another():
                break
            self._climb(self.trials.setdefault(trial.key, trial))
        self._repeat_finalists()

    def prepare(self) -> None:
        """Write the plan, and the ids that are set aside."""
        save_plan(self.plan)
        held_out.write_ids(self.folder / "held_out.txt", self.dataset, self.rows)

    def decision(self) -> Decision | None:
        """Whether to train at all; None where that is not the question."""
        return None

    def regimes(self) -> list[Regime]:
        """Methods at equal epochs and at equal time; none where that is not the question."""
        return []

    @property
    def default(self) -> Trial | None:
        """The default settings; None before they are tried."""
        return next((t for t in self.trials.values() if t.is_default), None)

    @property
    def tried(self) -> set[str]:
        """Labels of the single settings that were tried."""
        return {label for t in self.trials.values() for label in t.label.split(", ")}

    @property
    def failed(self) -> dict[str, str]:
        """Why settings could not be trained, by label."""
        return {t.label: t.failure for t in self.trials.values() if t.failure}

    @property
    def spent(self) -> float:
        """Seconds of all runs, also of those before a restart."""
        return sum(s.seconds for t in self.trials.values() for s in t.scores.values())

    def _choices(self) -> Iterator[dict[str, Candidate]]:
        """The planned settings, then what the sampler proposes."""
        usual = {question: found[0] for question, found in self.questions.items()}
        steps = {question: found[1:] for question, found in self.questions.items()}
        if self.plan.is_curve and self.plan.trials < len(self.questions["temperature"]):
            # No time for every place: some that are far from each other, and the last by the curve.
            steps["temperature"] = spread(self.questions["temperature"])[1 : self.plan.trials - 1]
        yield usual
        yield from ({**usual, question: candidate} for question, found in steps.items() for candidate in found)
        while len(self.trials) < WIDER * self.plan.trials and (choice := self._proposal()) is not None:
            yield choice

    def _proposal(self) -> dict[str, Candidate] | None:
        if not self.plan.is_curve:
            scores = {t.label: self._value(t, self.plan.rungs[0]) for t in self.trials.values()}
            return best_combination(self.questions, scores, self.trials)
        found, fitted = self.questions["temperature"], self.curve()
        values = [t.value for t in self.trials.values() if t.value is not None]
        next_place = next((c for c in spread(found) if c.value not in values), None)  # where some failed
        candidate = next_on_curve(found, fitted, values) if fitted else next_place
        return None if candidate is None else {"temperature": candidate}

    def _climb(self, trial: Trial) -> None:
        """Round after round, until it falls behind or time is up."""
        for epochs in self.plan.rungs:
            if epochs != self.plan.rungs[0] and not trial.is_default and not self._has_time_for(epochs):
                return
            if self.score(trial, epochs, self.plan.seeds[0]) is None:
                return
            if not trial.is_default and not self._is_promoted(trial, epochs):
                return

    def _is_promoted(self, trial: Trial, epochs: int) -> bool:
        """Whether a trial is among the best third of those scored after so many epochs; the first is."""
        rivals = (self._value(t, epochs) for t in self.trials.values() if not t.is_default)
        values = sorted((v for v in rivals if not math.isnan(v)), reverse=True)
        return bool(values) and self._value(trial, epochs) >= values[max(0, len(values) // ETA - 1)]

    def _value(self, trial: Trial, epochs: int) -> float:
        """The criterion with the first seed; NaN where there is none."""
        scores = trial.by_seed(epochs).get(self.plan.seeds[0])
        return math.nan if scores is None else scores.value(self.plan.criterion)

    def _repeat_finalists(self) -> None:
        """The default and the best with every seed, one seed after the other."""
        finalists = [t for t in self.trials.values() if t.is_default]
        finalists += [t for t in self.ranking() if not t.is_default][:FINALISTS]
        for seed, trial in itertools.product(self.plan.seeds[1:], finalists):
            if self._has_time_for(self.plan.rungs[-1]):
                self.score(trial, self.plan.rungs[-1], seed)

    def ranking(self) -> list[Trial]:
        """Settings that were trained for the longest, the best first: by the curve, if there is one."""
        last, fitted = self.plan.rungs[-1], self.curve()
        full = [t for t in self.trials.values() if self.plan.seeds[0] in t.by_seed(last)]
        if fitted is not None:
            return sorted(full, key=lambda t: -float(fitted.at([t.value or 1.0])[0][0]))
        return sorted(full, key=lambda t: -self._value(t, last))

    def curve(self) -> Curve | None:
        """The curve through what was trained for the longest; None where there is none."""
        if not self.plan.is_curve:
            return None
        points = [
            (trial.value, scores.value(self.plan.criterion), scores.right)
            for trial in self.trials.values()
            for scores in trial.by_seed(self.plan.rungs[-1]).values()
            if trial.value is not None
        ]
        return fit_curve(points)

    def _has_time_for(self, epochs: int, besides: float = 0.0) -> bool:
        return self._is_affordable(self.cost(epochs) + besides)

    def _is_affordable(self, seconds: float) -> bool:
        """Whether the time that is left suffices for so many seconds."""
        return self.beside + self.spent + seconds <= RESERVE * self.plan.seconds

    def _has_time_for_another(self) -> bool:
        """Whether a further first try leaves the finalists the time for their seeds."""
        if self.plan.is_curve and len(self.trials) < SPREAD:
            return self._has_time_for(self.plan.rungs[0])
        runs_left = (len(self.plan.seeds) - 1) * (FINALISTS + 1)
        return self._has_time_for(self.plan.rungs[0], runs_left * self.cost(self.plan.rungs[-1]))

    def cost(self, epochs: int) -> float:
        """Seconds of a run of so many epochs: as those before it took, else as planned."""
        took = [s.seconds for t in self.trials.values() for s in t.by_seed(epochs).values()]
        return sum(took) / len(took) if took else epochs * self.plan.seconds_per_epoch + OVERHEAD

    def score(self, trial: Trial, epochs: int, seed: int) -> HeldOutScores | None:
        """Scores of these settings, trained if they have not been. None where training failed."""
        if (epochs, seed) not in trial.scores and not trial.failure:
            template = N_("{label}, 1 epoch") if epochs == 1 else N_("{label}, {epochs} epochs")
            text = message(template, label=trial.label, epochs=epochs)
            text += message(", seed {seed}", seed=seed) if seed else ""
            self.on_progress(text, min(0.99, self.spent / self.plan.seconds))
            trial.scores[epochs, seed] = self._train_and_score(self.cell(trial, epochs, seed))
            write_scores(self.folder / "scores", trial, epochs, seed)
            if not trial.failure:
                self.on_scored(self)
        return trial.by_seed(epochs).get(seed)

    def _train_and_score(self, cell: Cell) -> HeldOutScores:
        self.wait_for_device(self.plan.device)
        started, scores = time.monotonic(), HeldOutScores(cell.run, failure=train_cell(cell, self.plan.device))
        if not scores.failure:
            scores = held_out.score_run(runs.load(cell.run), self.rows, self.plan.device)
        return replace(scores, seconds=time.monotonic() - started)

    def cell(self, trial: Trial, epochs: int, seed: int) -> Cell:
        """The cell of these settings: the same settings have the same run."""
        plan, exclude = self.plan, str(self.folder / "held_out.txt")
        settings: JsonObject = {"method": plan.method, "dataset": plan.dataset, "epochs": epochs, "exclude": exclude}
        root = {"root": plan.root} if plan.root else {}
        settings |= {"snapshot_every": 0, **plan.base(), **trial.settings, **root}
        run = f"{self.plan.name}-{trial.key}-e{epochs}-s{seed}"
        return Cell(run, {"setting": trial.label, "epochs": epochs}, settings, seed)


# --- settings beyond the plan ------------------------------------------------------------------

# Optuna's GPSampler and TPESampler were tried: over 12 played searches each, their choice lost 0.98 points to the best
# temperature and 1.61 points to the best of three questions; these lose 1.01 and 1.22, in a third of the time.


def best_combination(
    questions: Questions, scores: Mapping[str, float], tried: Collection[str]
) -> dict[str, Candidate] | None:
    """The untried combination that is best if the effects of single answers add up: least squares over all trials.
    Args: scores: by label of a trial; tried: keys of trials. Returns: None where every combination was tried."""
    answers = [(q, c) for q, found in questions.items() for c in found]
    combinations = [dict(zip(questions, c, strict=True)) for c in itertools.product(*questions.values())]
    design = np.array([[choice[q] is c for q, c in answers] for choice in combinations], dtype=np.float64)
    trials = [trial_of(choice) for choice in combinations]
    at = [row for row, trial in enumerate(trials) if np.isfinite(scores.get(trial.label, np.nan))]
    if not at:
        return None
    y = np.array([scores[trials[row].label] for row in at])
    effects = np.linalg.lstsq(design[at], y - y.mean(), rcond=None)[0]
    order = np.argsort(-(design @ effects), kind="stable")
    return next((combinations[row] for row in order if trials[row].key not in tried), None)


def train_cell(cell: Cell, device: str = "auto") -> str:
    """Train a cell, or go on with it where it was stopped; a cell that is done is left alone.
    Returns: why it could not be trained; "" where it is done. Raises: CannotGoOn where it was stopped meanwhile;
    Locked where another process trains it."""
    run: Run | None = None
    with contextlib.suppress(ValueError, OSError):
        run = runs.load(cell.run)
    if run is not None and run.status().get("status") == "done":
        return ""
    stop_requested = threading.Event()
    try:
        _train(cell, run, device, stop_requested)
    except Locked:
        raise
    except (CannotGoOn, ValueError, OSError, RuntimeError, torch.OutOfMemoryError) as error:
        return sentence(error) or type(error).__name__
    if stop_requested.is_set():  # also as the run ended: the next one is not begun
        raise CannotGoOn("{run} was stopped; run the same command again to continue", run=cell.run)
    return ""


def _train(cell: Cell, run: Run | None, device: str, stop_requested: threading.Event) -> None:
    if run is not None:
        loop.train(prepare(from_dict(run.manifest["config"])), run, resume=True, stop_requested=stop_requested)
        return
    setup = prepare(dataclasses.replace(config_of(cell), device=device))
    about = manifest_of(setup, shlex.join(["python", "-m", "contrastive_core", *cell.argv()]))
    run = runs.create(cell.run, setup.config.to_dict(), setup.dataset.fingerprint, **about)
    loop.train(setup, run, stop_requested=stop_requested)
