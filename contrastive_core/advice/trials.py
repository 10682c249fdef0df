"""Settings that the adviser tries, and their scores by epochs and seed, on disk."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contrastive_core.advice.candidates import Candidate
from contrastive_core.advice.held_out import HeldOutScores
from contrastive_core.evaluation.verdicts import SettingScores
from contrastive_core.storage import json_files


@dataclass(frozen=True, eq=False)
class Trial:
    """Some settings, and their scores by epochs and seed."""

    label: str
    settings: dict[str, object]
    value: float | None  # its place on the curve of the question, if there is one
    scores: dict[tuple[int, int], HeldOutScores] = field(default_factory=dict)  # by epochs, seed

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:6]

    @property
    def is_default(self) -> bool:
        return not self.settings

    @property
    def failure(self) -> str:
        """Why a training of these settings failed; "" where none did."""
        return next((s.failure for s in self.scores.values() if s.failure), "")

    @property
    def epochs(self) -> int:
        """The most epochs that it was scored after; 0: none."""
        return max((e for (e, _), s in self.scores.items() if not s.failure), default=0)

    def by_seed(self, epochs: int) -> dict[int, HeldOutScores]:
        """Scores after so many epochs, by seed, rising."""
        return {seed: s for (e, seed), s in sorted(self.scores.items()) if e == epochs and not s.failure}

    def of_criterion(self, epochs: int, criterion: str) -> SettingScores:
        """The same as `verdicts` compares them."""
        by_seed = self.by_seed(epochs)
        right = {seed: s.right for seed, s in by_seed.items() if s.right is not None}
        return SettingScores(self.label, {seed: s.value(criterion) for seed, s in by_seed.items()}, right)


def trial_of(choice: Mapping[str, Candidate]) -> Trial:
    """The trial of one candidate for each question."""
    settings = {k: v for candidate in choice.values() for k, v in candidate.settings.items()}
    curve = choice.get("temperature") or (next(iter(choice.values())) if len(choice) == 1 else None)
    return Trial(", ".join(c.label for c in choice.values()), settings, curve.value if curve else None)


def write_scores(folder: Path, trial: Trial, epochs: int, seed: int) -> None:
    """Write the scores of a trial where `read_trials` finds them."""
    scores = trial.scores[epochs, seed]
    arrays = {} if scores.right is None else {"right": scores.right.astype(np.float32)}
    json_files.write_npz(folder / f"{scores.run}.npz", **arrays)
    record = {name: getattr(trial, name) for name in ("label", "settings", "value")}
    record |= {name: getattr(scores, name) for name in ("run", "scores", "seconds", "failure")}
    json_files.write_json(folder / f"{scores.run}.json", {**record, "epochs": epochs, "seed": seed})  # last


def read_trials(folder: Path) -> dict[str, Trial]:
    """Trials by key, in the order in which they were first scored; damaged scores are left out."""
    trials: dict[str, Trial] = {}
    for path in sorted(folder.glob("*.json"), key=lambda p: p.stat().st_mtime_ns):
        try:
            raw = json_files.read_object(path)
            trial = Trial(raw["label"], raw["settings"], raw["value"])
            scores = {name: math.nan if value is None else float(value) for name, value in raw["scores"].items()}
            right = json_files.read_npz(path.with_suffix(".npz")).get("right")
            found = HeldOutScores(raw["run"], scores, float(raw["seconds"]), right, raw["failure"])
            trials.setdefault(trial.key, trial).scores[int(raw["epochs"]), int(raw["seed"])] = found
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return trials
