"""The search among methods: at equal epochs, and at equal time.

Every method that fits the data is trained with one seed for the same number of epochs, and once more for as many epochs
as fit into the time that the default took. The best two of either and the default get the other seeds, whose time is
set aside where two methods can have all of them. What is claimed rests on three seeds (evaluation/verdicts.py); where
two of the best are not told apart, it is not decided.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from contrastive_core.advice.held_out import Trial, read_trials
from contrastive_core.advice.planning import RESERVE
from contrastive_core.advice.search import FEWEST, Search
from contrastive_core.evaluation.verdicts import Contrast, SettingScores, contrast, interval_and_basis
from contrastive_core.messages import N_, join, message
from contrastive_core.records.advice import FINALISTS, OVERHEAD, epochs_in_time, least_duration
from contrastive_core.records.advice_answer import Regime
from contrastive_core.storage.json_files import JsonObject

EPOCHS, TIME = "epochs", "time"
TITLES = {EPOCHS: N_("At equal epochs"), TIME: N_("At equal time")}


class MethodSearch(Search):
    """An adviser's trials of the question "method". `run` may be called again after whatever ended it."""

    def run(self, on_scored: Callable[[Search], None] = lambda search: None) -> None:
        """Try methods until the time is used up. Raises CannotGoOn when a run is stopped."""
        self.on_scored = on_scored
        self.prepare()
        self.trials = read_trials(self.folder / "scores")
        first = self.plan.seeds[0]
        for trial, regime in itertools.product(self._methods(), TITLES):
            epochs = self.epochs_of(trial, regime)  # at equal time, from what the first training took
            is_needed = len(self.tried) - len(self.failed) < FEWEST
            if regime == TIME and first not in self._scores(trial, EPOCHS).scores:
                continue
            if first in trial.by_seed(epochs) or is_needed or self._fits(trial, epochs, self._for_seeds()):
                self.score(self.trials.setdefault(trial.key, trial), epochs, first)
        for seed, regime in itertools.product(self.plan.seeds[1:], TITLES):
            for trial in self.finalists(regime):
                epochs = self.epochs_of(trial, regime)
                if seed in trial.by_seed(epochs) or self._fits(trial, epochs):
                    self.score(trial, epochs, seed)

    def _methods(self) -> Iterator[Trial]:
        """A trial of each method, the default first; those of before a restart keep their scores."""
        for candidate in self.questions["method"]:
            trial = Trial(candidate.label, candidate.settings, None)
            yield self.trials.get(trial.key, trial)

    def epochs_of(self, trial: Trial, regime: str) -> int:
        """How long a method is trained: for the plan's epochs, or for the time that the default took for these, by the
        first seed of both; before they are trained, as planned."""
        epochs, first = self.plan.rungs[-1], self.plan.seeds[0]
        if regime == EPOCHS:
            return epochs
        took = [t.by_seed(epochs)[first].seconds for t in (self.default, trial) if t and first in t.by_seed(epochs)]
        if len(took) == 2 and min(took) > 0:
            return max(1, round(epochs * took[0] / took[1]))
        return epochs_in_time(self.plan, self._method(trial), epochs)

    def _method(self, trial: Trial) -> str:
        return str(trial.settings.get("method", self.plan.method))

    @property
    def tried(self) -> set[str]:
        """Labels of the methods that were trained at equal epochs and at equal time."""
        done = [t for t in self.trials.values() if t.failure or all(self._scores(t, r).scores for r in TITLES)]
        return {t.label for t in done}

    def _for_seeds(self) -> float:
        """Seconds to set aside for the other seeds of the finalists; none where time is too short to decide anyway."""
        if least_duration(self.plan) > RESERVE * self.plan.seconds:
            return 0.0
        runs = sum(len(t.scores) for t in self.trials.values())
        later = (len(self.plan.seeds) - 1) * (FINALISTS + 1) * len(TITLES)
        return later * self.spent / max(1, runs)

    def _fits(self, trial: Trial, epochs: int, besides: float = 0.0) -> bool:
        """Whether there is time for a training, by what its like took, else as planned, and for what is set aside."""
        took = [s.seconds for s in trial.by_seed(epochs).values()]
        pace = self.plan.paces.get(self._method(trial), self.plan.seconds_per_epoch)
        cost = float(np.mean(took)) if took else epochs * pace + OVERHEAD
        return self._is_affordable(cost + besides)

    def _scores(self, trial: Trial, regime: str) -> SettingScores:
        return trial.of_criterion(self.epochs_of(trial, regime), self.plan.criterion)

    def finalists(self, regime: str) -> list[Trial]:
        """The default, and the best others by the first seed."""
        known = [t for t in self.trials.values() if self.plan.seeds[0] in self._scores(t, regime).scores]
        others = sorted((t for t in known if not t.is_default), key=lambda t: -self._first(t, regime))
        return [*(t for t in known if t.is_default), *others[:FINALISTS]]

    def _first(self, trial: Trial, regime: str) -> float:
        return self._scores(trial, regime).scores[self.plan.seeds[0]]

    def regimes(self) -> list[Regime]:
        """What was shown at equal epochs and at equal time, so far."""
        return [self._regime(regime) for regime in TITLES]

    def _regime(self, regime: str) -> Regime:
        known = [(t, s) for t in self.trials.values() if (s := self._scores(t, regime)).scores]
        known.sort(key=lambda one: (-min(3, len(one[1].scores)), -one[1].mean))
        rows = [self._row(trial, scores, self.epochs_of(trial, regime)) for trial, scores in known]
        once = [scores.label for _, scores in known if not scores.is_repeated]
        verdict, best = _verdict([scores for _, scores in known if scores.is_repeated], once)
        return {"regime": regime, "title": TITLES[regime], "rows": rows, "verdict": verdict, "best": best}

    def _row(self, trial: Trial, scores: SettingScores, epochs: int) -> JsonObject:
        interval, basis = interval_and_basis(scores)
        return {
            "label": scores.label,
            "method": self._method(trial),
            "epochs": epochs,
            "seeds": len(scores.scores),
            "mean": scores.mean,
            "interval": interval,
            "basis": basis,
            "seconds": float(np.mean([s.seconds for s in trial.by_seed(epochs).values()])),
        }


def _verdict(repeated: list[SettingScores], once: list[str]) -> tuple[str, str]:
    """What three seeds of some methods show, in one or two sentences; the label of the method to take, "" where it is
    not decided."""
    if len(repeated) < 2:
        return N_("Not decided: no two methods have three seeds yet. Give it more time."), ""
    best, *others = repeated
    tests = len(repeated) * (len(repeated) - 1) // 2
    found = {other.label: contrast(best, other, repeated, tests) for other in others}
    equal = [label for label, one in found.items() if one.sign <= 0]
    text = _decided(best, found) if not equal else _not_decided(best, equal, found)
    if once:
        text = join("", [text, message(" Tried with fewer seeds: {names}.", names=join(", ", once))])
    return text, "" if equal else best.label


def _decided(best: SettingScores, found: dict[str, Contrast]) -> str:
    label, nearest = min(found.items(), key=lambda item: item[1].difference)
    return message(
        "Take {best}: {difference} points above {label}, the next (95 % CI over images and {seeds} seeds: {low} to "
        "{high}).",
        **_figures(nearest),
        best=best.label,
        label=label,
        seeds=len(best.scores),
    )


def _not_decided(best: SettingScores, equal: list[str], found: dict[str, Contrast]) -> str:
    nearest = found[equal[0]]
    return message(
        "Not decided: {best} scored highest, but is not shown to be better than {equal}: {difference} points above "
        "{first} (95 % CI over images and {seeds} seeds: {low} to {high}).",
        **_figures(nearest),
        best=best.label,
        equal=join(", ", equal),
        first=equal[0],
        seeds=len(best.scores),
    )


def _figures(found: Contrast) -> dict[str, Any]:
    low, high = found.interval or (0.0, 0.0)
    return {"difference": f"{100 * found.difference:+.1f}", "low": f"{100 * low:.1f}", "high": f"{100 * high:.1f}"}
