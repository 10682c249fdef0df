"""The search for whether to train at all: references first, then training from scratch and going on from the best
frozen encoder, a seed at a time, for as many epochs as fit into the time with three seeds of both."""

import dataclasses
import hashlib
from collections.abc import Callable

from contrastive_core.advice.decision import Evidence, decide
from contrastive_core.advice.held_out import Trial, read_trials
from contrastive_core.advice.planning import RESERVE, SHORTEST
from contrastive_core.advice.references import References
from contrastive_core.advice.search import Search
from contrastive_core.errors import CannotGoOn
from contrastive_core.evaluation.verdicts import SettingScores
from contrastive_core.importers.frozen_encoders import start_from
from contrastive_core.messages import N_, message, sentence
from contrastive_core.records.advice import OVERHEAD, save_plan
from contrastive_core.records.advice_answer import Decision
from contrastive_core.records.frozen import FrozenEncoder, parse
from contrastive_core.records.sweep_grid import config_of
from contrastive_core.training import loop

SCRATCH, CONTINUE = "scratch", "continue"


class StartSearch(Search):
    """An adviser's trials of the question "start". `run` may be called again after whatever ended it."""

    evidence: Evidence | None = None
    _failures: dict[str, str] = {}  # noqa: RUF012 (replaced, never changed)

    def run(self, on_scored: Callable[[Search], None] = lambda search: None) -> None:
        """Judge what needs no training, then train until the time is used up. Raises CannotGoOn when a run is
        stopped."""
        self.on_scored = on_scored
        self.prepare()
        self.trials = read_trials(self.folder / "scores")
        options = self._options()
        self._update(options)
        on_scored(self)
        epochs = self._epochs(options)
        for seed in self.plan.seeds:
            for trial in options.values():
                if seed not in trial.by_seed(epochs) and not self._has_time_for(epochs):
                    return
                self.score(trial, epochs, seed)
                self._update(options)
                on_scored(self)

    def decision(self) -> Decision | None:
        return decide(self.evidence) if self.evidence else None

    @property
    def failed(self) -> dict[str, str]:
        return {**super().failed, **self._failures}

    def _options(self) -> dict[str, Trial]:
        """The trainings to try, and the references that they are held to."""
        references = References(self.dataset, self.rows, self.folder, self.plan.device)
        self.on_progress(N_("raw pixels"), None)
        pixels = references.pixels()
        frozen = references.frozen([parse(text) for text in self.plan.frozen], self.on_progress)
        scratch = self._kept(Trial(N_("from scratch"), {}, None))
        self.on_progress(N_("the untrained encoder"), None)
        untrained = references.untrained(config_of(self.cell(scratch, 1, 0)), self.plan.seeds)
        self._failures = references.failed
        self.evidence = Evidence(pixels, references.chance(), untrained, list(frozen.values()), {})
        options = {SCRATCH: scratch}
        if frozen:
            best = max(frozen, key=lambda encoder: frozen[encoder].mean)
            if trial := self._continued(best):
                options[CONTINUE] = trial
        return options

    def _continued(self, encoder: FrozenEncoder) -> Trial | None:
        """Going on from an encoder; None where it cannot be trained on these images."""
        name = f"{self.plan.name}-start-{hashlib.sha256(encoder.text.encode()).hexdigest()[:6]}"
        try:
            settings = start_from(encoder, self.dataset, name, self.plan.root)
        except (ValueError, OSError) as error:
            self._failures = {**self._failures, encoder.title: sentence(error)}
            return None
        return self._kept(Trial(message("going on from {name}", name=encoder.title), settings, None))

    def _kept(self, trial: Trial) -> Trial:
        """The trial of these settings with the scores that it has from before."""
        return self.trials.setdefault(trial.key, trial)

    def _epochs(self, options: dict[str, Trial]) -> int:
        """Epochs of each training: as before a restart, else as many as fit with all seeds of all options."""
        if known := max((trial.epochs for trial in options.values()), default=0):
            return known
        seconds = [self._seconds_per_epoch(trial) for trial in options.values()]
        runs = len(self.plan.seeds) * len(options)
        left = RESERVE * self.plan.seconds - self.beside - runs * OVERHEAD
        fitting = int(left / (len(self.plan.seeds) * sum(seconds)))
        epochs = min(self.plan.rungs[-1], max(SHORTEST, fitting))
        self.plan = dataclasses.replace(self.plan, rungs=(epochs,))
        save_plan(self.plan)
        return epochs

    def _seconds_per_epoch(self, trial: Trial) -> float:
        if trial.is_default:
            return self.plan.seconds_per_epoch
        self.on_progress(N_("timing a few steps"), None)
        config = dataclasses.replace(config_of(self.cell(trial, 1, 0)), device=self.plan.device)
        try:
            return loop.seconds_per_epoch(config)
        except (CannotGoOn, ValueError, OSError, RuntimeError):  # said when it is trained
            return self.plan.seconds_per_epoch

    def _update(self, options: dict[str, Trial]) -> None:
        """Put the scores so far into the evidence; an option whose training failed is no longer planned."""
        assert self.evidence is not None
        planned = [name for name, trial in options.items() if not trial.failure]
        trained: dict[str, SettingScores] = {}
        for name in planned:
            if (trial := options[name]).epochs:
                trained[name] = trial.of_criterion(trial.epochs, self.plan.criterion)
        self.evidence = dataclasses.replace(self.evidence, trained=trained, planned=planned)
