"""The search: settings are asked of Optuna, trained as ordinary runs, judged, halved.

Each round trains its settings from the start, with a schedule as long as the round: a run that was
cut off in the middle of its schedule says little about its end. Optuna keeps the trials in
`study.log` and prunes by successive halving; runs are named after their settings, so that what was
trained once is never trained again, and an adviser that was killed goes on.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrastive_core import runs
from contrastive_core.advice import curve, judge, one_run
from contrastive_core.advice.judge import Judged
from contrastive_core.advice.plan import (
    ETA,
    FINALISTS,
    OVERHEAD,
    RESERVE,
    SPREAD,
    Plan,
    folder_of,
    save,
    settings_of,
)
from contrastive_core.advice.space import Candidate
from contrastive_core.advice.tried import Tried
from contrastive_core.data.datasets import Dataset
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.sweeps.grid import arguments_of

if TYPE_CHECKING:
    import optuna

__all__ = ["Search"]

FEWEST = 2  # settings that are tried whatever the clock says: the default, and one to compare
WIDER = 2  # times the settings that were planned, at most, where time is left
REPEATS = 5  # proposals in a row that were tried before, after which no more are asked for


class Search:
    """One adviser at work. `tried` grows; `run` may be called again after whatever ended it."""

    def __init__(
        self, plan: Plan, dataset: Dataset, on_progress: OnProgress = ignore_progress
    ) -> None:
        self.plan, self.dataset, self.on_progress = plan, dataset, on_progress
        self.folder = folder_of(plan.name)
        self.rows = judge.held_out(dataset)
        self.questions = settings_of(plan, dataset)
        self.tried: dict[str, Tried] = {}
        self.failed: dict[str, str] = {}  # labels, and why
        self.baselines: dict[str, float] = {}  # kNN without any training, by what of
        self.spent = 0.0  # seconds of all runs, also of those before a restart
        self.on_judged: Callable[[Search], None] = lambda search: None

    def run(self, on_judged: Callable[[Search], None] = lambda search: None) -> None:
        """Try settings until the time is used up. Raises CannotGoOn when a run is stopped."""
        self.on_judged = on_judged
        self.prepare()
        self._halve()
        self._repeat_finalists()

    def prepare(self) -> None:
        """Write the plan, and the ids that are set aside."""
        save(self.plan)
        judge.write_ids(self.folder / "held_out.txt", self.dataset, self.rows)

    @property
    def default(self) -> Tried | None:
        """The default settings; None before they are tried."""
        return next((t for t in self.tried.values() if t.is_default), None)

    # --- rounds ---

    def _halve(self) -> None:
        study = self._study()
        for params in self._planned():
            study.enqueue_trial(params, skip_if_exists=True)
        self._recall(study)
        repeats = 0
        while repeats < REPEATS and len(self.tried) < WIDER * self.plan.trials:
            trial = self._unfinished(study) or study.ask()
            tried = self._settings_of(trial)
            is_new = tried.key not in self.tried
            repeats = 0 if is_new else repeats + 1
            if is_new and len(self.tried) >= FEWEST and not self._may_try_another():
                return  # it stays open: with more time it is the next
            self._climb(study, trial, self.tried.setdefault(tried.key, tried))

    def _recall(self, study: optuna.Study) -> None:
        """What was tried before a restart, with its figures."""
        for frozen in study.get_trials(deepcopy=False):
            if not frozen.state.is_finished():
                continue
            tried = self._settings_of(frozen)
            tried = self.tried.setdefault(tried.key, tried)
            if why := frozen.user_attrs.get("why"):
                self.failed[tried.label] = str(why)
            for epochs in self.plan.rungs:
                if judge.kept(self._judged_folder, self._name(tried, epochs, self.plan.seeds[0])):
                    self.judged(tried, epochs, self.plan.seeds[0])

    def _climb(self, study: optuna.Study, trial: optuna.Trial, tried: Tried) -> None:
        """Round after round, until it falls behind or time is up."""
        from optuna.trial import TrialState

        value = float("nan")
        for number, epochs in enumerate(self.plan.rungs):
            if number and not tried.is_default and not self._has_time_for(epochs):
                break
            judged = self.judged(tried, epochs, self.plan.seeds[0])
            if judged is None:
                trial.set_user_attr("why", self.failed.get(tried.label, ""))
                study.tell(trial, state=TrialState.FAIL)
                return
            value = judged.value(self.plan.criterion)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a step that was reported before a restart
                trial.report(value, ETA**number)
            if epochs != self.plan.rungs[-1] and not tried.is_default and trial.should_prune():
                study.tell(trial, state=TrialState.PRUNED)
                return
        if math.isnan(value):
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, value)

    def _repeat_finalists(self) -> None:
        """The default and the best with every seed, one seed after the other."""
        finalists = [t for t in self.tried.values() if t.is_default]
        finalists += [t for t in self.ranking() if not t.is_default][:FINALISTS]
        for seed in self.plan.seeds[1:]:
            for tried in finalists:
                if self._has_time_for(self.plan.rungs[-1]):
                    self.judged(tried, self.plan.rungs[-1], seed)

    def ranking(self) -> list[Tried]:
        """Settings that were tried for the longest, the best first: by the curve, if one stands."""
        last, seed = self.plan.rungs[-1], self.plan.seeds[0]
        full = [t for t in self.tried.values() if (last, seed) in t.judged]
        drawn = self.curve()
        if drawn is not None:
            return sorted(full, key=lambda t: -float(drawn.at([t.value or 1.0])[0][0]))
        return sorted(full, key=lambda t: -t.judged[last, seed].value(self.plan.criterion))

    def curve(self) -> curve.Curve | None:
        """The curve through what was tried for the longest; None where there is none."""
        if not self.plan.is_curve:
            return None
        judged = [
            (tried.value, j.value(self.plan.criterion), j.right)
            for tried in self.tried.values()
            for j in tried.at(self.plan.rungs[-1]).values()
            if tried.value is not None
        ]
        return curve.through(judged)

    def _has_time_for(self, epochs: int, besides: float = 0.0) -> bool:
        return self.spent + self.cost(epochs) + besides <= RESERVE * self.plan.seconds

    def _may_try_another(self) -> bool:
        """Whether a further first try leaves the finalists the time for their seeds."""
        if self.plan.is_curve and len(self.tried) < SPREAD:
            return self._has_time_for(self.plan.rungs[0])
        runs_left = (len(self.plan.seeds) - 1) * (FINALISTS + 1)
        return self._has_time_for(self.plan.rungs[0], runs_left * self.cost(self.plan.rungs[-1]))

    def cost(self, epochs: int) -> float:
        """Seconds of a run of so many epochs: as those before it took, else as was foretold."""
        took = [
            j.seconds for t in self.tried.values() for (e, _), j in t.judged.items() if e == epochs
        ]
        return sum(took) / len(took) if took else epochs * self.plan.seconds_per_epoch + OVERHEAD

    # --- one run ---

    def judged(self, tried: Tried, epochs: int, seed: int) -> Judged | None:
        """Figures of these settings, trained if they have not been. None where training failed."""
        if (epochs, seed) in tried.judged or tried.label in self.failed:
            return tried.judged.get((epochs, seed))
        name = self._name(tried, epochs, seed)
        found = judge.kept(self._judged_folder, name)
        if found is None:
            text = f"{tried.label}, {epochs} epochs" + (f", seed {seed}" if seed else "")
            self.on_progress(text, min(0.99, self.spent / self.plan.seconds))
            found = self._trained(tried, name, epochs, seed)
            if found is None:
                return None
        self.spent += found.seconds
        tried.judged[epochs, seed] = found
        self.on_judged(self)
        return found

    def _name(self, tried: Tried, epochs: int, seed: int) -> str:
        """The run of these settings: the same settings have the same run."""
        return f"{self.plan.name}-{tried.key}-e{epochs}-s{seed}"

    @property
    def _judged_folder(self) -> Path:
        return self.folder / "judged"

    def _trained(self, tried: Tried, name: str, epochs: int, seed: int) -> Judged | None:
        started = time.monotonic()
        reason = one_run.train_and_wait(name, self._arguments(tried, epochs, seed))
        if reason:
            self.failed[tried.label] = reason
            return None
        judged = judge.judge(runs.load(name), self.rows, self.plan.device)
        judged = replace(judged, seconds=time.monotonic() - started)
        judge.keep(self._judged_folder, judged)
        return judged

    def _arguments(self, tried: Tried, epochs: int, seed: int) -> list[str]:
        settings = {
            "method": self.plan.method, "dataset": self.plan.dataset, "epochs": epochs,
            "exclude": str(self.folder / "held_out.txt"), "snapshot_every": 0,
            **self.plan.base(), **tried.settings,
        }  # fmt: skip
        if self.plan.root:
            settings["root"] = self.plan.root
        return ["--device", self.plan.device, *arguments_of(settings, seed)]

    # --- what is asked for ---

    def _study(self) -> optuna.Study:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return optuna.create_study(
                study_name=self.plan.name,
                storage=JournalStorage(JournalFileBackend(str(self.folder / "study.log"))),
                sampler=(
                    optuna.samplers.GPSampler(seed=0, n_startup_trials=SPREAD - 1)
                    if self.plan.is_curve
                    else optuna.samplers.TPESampler(seed=0, n_startup_trials=5)
                ),
                pruner=optuna.pruners.SuccessiveHalvingPruner(1, ETA),
                direction="maximize",
                load_if_exists=True,
            )

    def _planned(self) -> Iterator[dict[str, Any]]:
        """The default, then one question at a time away from it; of a curve that there is no time
        to try at every place, places far from each other, the last left to the sampler."""
        usual = {q: self._param(found[0]) for q, found in self.questions.items()}
        yield usual
        for question, found in self.questions.items():
            others = found[1:]
            if self.plan.is_curve and self.plan.trials < len(found):
                others = curve.spread(found)[1 : self.plan.trials - 1]
            for candidate in others:
                yield {**usual, question: self._param(candidate)}

    def _param(self, candidate: Candidate) -> Any:
        return candidate.value if candidate.question == "temperature" else candidate.label

    def _settings_of(self, trial: optuna.trial.BaseTrial) -> Tried:
        """What a trial stands for, in settings of `train`."""
        labels, settings, value = [], dict[str, Any](), None
        for question, found in self.questions.items():
            if question == "temperature":
                chosen = self._temperature(trial, found)
                value = chosen.value
            else:
                label = trial.suggest_categorical(question, [c.label for c in found])
                chosen = next(c for c in found if c.label == label)
                value = chosen.value if len(self.questions) == 1 else value
            labels.append(chosen.label)
            settings |= chosen.settings
        return Tried(", ".join(labels), settings, value)

    def _temperature(self, trial: optuna.trial.BaseTrial, found: list[Candidate]) -> Candidate:
        values = [c.value for c in found if c.value is not None]
        low, high = min(values), max(values)  # those that the plan is about
        value = float(f"{trial.suggest_float('temperature', low, high, log=True):.2g}")
        known = next(
            (c for c in found if c.value is not None and abs(c.value - value) < 1e-9), None
        )
        if known is not None:
            return known
        key = next(iter(found[-1].settings))
        sign = found[0].label.rpartition(" ")[0]
        return Candidate("temperature", f"{sign} {value:g}", {key: value}, value)

    @staticmethod
    def _unfinished(study: optuna.Study) -> optuna.Trial | None:
        """A trial that a kill left in the middle."""
        from optuna.trial import Trial, TrialState

        left = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return Trial(study, left[0]._trial_id) if left else None
