"""An adviser's plan, its folder and its answer, as read by the app's pages. Torch-free."""

import contextlib
import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from contrastive_core.base import json_files
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import N_, join, message
from contrastive_core.base.storage import FileCache, runs_home
from contrastive_core.runs import checked_name

START = "start"  # the question whether to train at all; it excludes all others
QUESTIONS = {
    "temperature": N_("sharpness of the softmax, or width of the margin for a margin loss"),
    "method": N_("pairs that are compared"),
    "augmentation": N_("positive views"),
    "head": N_("layers between the encoder and the loss"),
    "batch": N_("images compared at once"),
    START: N_(
        "whether to train at all: use raw pixels or a frozen encoder, continue training it, or train from scratch"
    ),
}
NEEDS_LABELS = N_(
    "The adviser compares settings by kNN on held-out images. This needs labels of at least two classes. Scores "
    "without labels can reward a bad encoder."
)
CRITERION = N_("kNN on held-out images")
SEEDS = (0, 1, 2)
FINALISTS = 2  # settings besides the default that are trained with every seed
OVERHEAD = 2.0  # seconds to load the images and to score a training
RESERVE = 0.95  # of the time; the rest is for the test images and the answer
NO_TIME = N_("not enough time")
ENOUGH = 8  # epochs, as long as the benchmark's; settings are dropped before trainings get shorter


@dataclass(frozen=True)
class Candidate:
    """Settings to try, {} for the default. `value` is their position on a plot's axis if they are one number."""

    label: str
    settings: dict[str, object] = field(default_factory=dict)
    value: float | None = None
    epochs: int = 0

    @property
    def key(self) -> str:
        """The part of its runs' names that identifies the settings (6 hex digits)."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:6]

    @property
    def is_default(self) -> bool:
        return not self.settings


@dataclass(frozen=True)
class Plan:
    """The plan of an adviser: the candidates, the default first, and the training time that each of them gets."""

    name: str
    dataset: str
    root: str | None
    method: str
    choose: tuple[str, ...]
    minutes: float
    candidates: tuple[Candidate, ...]
    seconds: float  # of each training
    train: int
    held_out: int
    device: str = "auto"
    batch_size: int | None = None  # for every training, if the default gives too few steps
    frozen: tuple[str, ...] = ()  # names of runs whose frozen encoders are scored
    left_out: Mapping[str, str] = field(default_factory=dict)  # why settings are not tried, by label
    pace: float = 0.0  # seconds of an epoch of the default, as measured
    most: int = 0  # epochs of the default if there is enough time

    @property
    def is_start(self) -> bool:
        """Return whether the question is whether to train at all."""
        return self.choose == (START,)

    @property
    def budget(self) -> float:
        """Seconds available for all trainings."""
        return RESERVE * 60 * self.minutes

    @property
    def settings(self) -> dict[str, object]:
        """Settings that all trainings share."""
        shared = {"root": self.root, "batch_size": self.batch_size}
        return {"method": self.method, "dataset": self.dataset, **{k: v for k, v in shared.items() if v is not None}}

    def sentence(self) -> str:
        """Describe the candidates, the time and the held-out images."""
        low, high = (bound(one.epochs for one in self.candidates) for bound in (min, max))
        said = N_(
            "Compares {count} settings of {choose} on {dataset}: {labels}. The default and the best {finalists} others "
            "train with {seeds} seeds. The test images are evaluated once, at the end, for the best and the default."
        )
        if len(self.candidates) <= FINALISTS + 1:
            said = N_(
                "Compares {count} settings of {choose} on {dataset}: {labels}. Each of them trains with {seeds} seeds. "
                "The test images are evaluated once, at the end, for the best and the default."
            )
        if self.is_start:
            said = N_(
                "Compares raw pixels, frozen encoders ({frozen}), continued training of the best of these, and "
                "training from scratch with {method} on {dataset}. Both trainings use {seeds} seeds."
            )
        said = message(
            said,
            count=len(self.candidates),
            choose=", ".join(self.choose),
            dataset=self.dataset,
            labels=join("; ", [one.label for one in self.candidates]),
            finalists=FINALISTS,
            seeds=len(SEEDS),
            frozen=len(self.frozen),
            method=self.method,
        )
        time = message(
            "Each training takes about {seconds} s (epochs: {epochs}). The whole search takes about {needed} "
            "of {minutes} min. {held_out} of {all} training images are held out for the comparison by kNN.",
            seconds=f"{self.seconds:.0f}",
            epochs=f"{low}" if low == high else f"{low}–{high}",
            needed=f"{max(1, self.duration / 60):.0f}",
            minutes=f"{self.minutes:g}",
            held_out=f"{self.held_out:,}",
            all=f"{self.train + self.held_out:,}",
        )
        parts, enough, tried = [said, time], min(self.most, ENOUGH), len(self.candidates)
        untried = list(self.left_out.values()).count(NO_TIME)
        if self.candidates[0].epochs < enough:
            text = N_("These trainings are short. With {minutes} min, each of them has {epochs} epochs.")
            parts.append(message(text, minutes=self.minutes_for(tried, enough), epochs=enough))
        if untried:
            text, count = N_("With {minutes} min, all {count} settings are tried."), tried + untried
            parts.append(message(text, minutes=self.minutes_for(count, enough), count=count))
        if self.batch_size is not None:
            parts.append(message("All train in batches of {batch_size}.", batch_size=self.batch_size))
        if self.left_out:
            names: dict[str, list[str]] = {}  # by reason
            for name, why in self.left_out.items():
                names.setdefault(why, []).append(name)
            told = [message("{name}: {why}", name=join(", ", every), why=why) for why, every in names.items()]
            parts.append(message("Left out: {why}.", why=join("; ", told)))
        return join(" ", parts)

    def trainings(self, count: int) -> int:
        """Return the number of trainings: one seed per candidate, and all seeds for the default and the finalists."""
        count = 1 + bool(self.frozen) if self.is_start else count
        return count + (len(SEEDS) - 1) * min(count, FINALISTS + 1)

    def minutes_for(self, count: int, epochs: int) -> int:
        """Return the minutes in which `count` settings train for `epochs` epochs at the measured pace."""
        return math.ceil(self.trainings(count) * (epochs * self.pace + OVERHEAD) / (60 * RESERVE))

    @property
    def duration(self) -> float:
        """Planned seconds of all trainings."""
        return self.trainings(len(self.candidates)) * (self.seconds + OVERHEAD)

    def to_dict(self) -> dict[str, object]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "Plan":
        """Rebuild a plan from the result of `to_dict`. Raises KeyError, TypeError for other input."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()
        }
        return cls(**{**values, "candidates": tuple(Candidate(**one) for one in raw["candidates"])})


# --- its folder --------------------------------------------------------------------------------------


def folder_of(name: str) -> Path:
    """Return the folder of an adviser's files."""
    return runs_home() / ".advice" / checked_name(name)


def lock_of(name: str) -> Path:
    """Return the lock that a running adviser holds."""
    return folder_of(name) / "lock"


def adviser_names() -> list[str]:
    """Return the names of all started advisers, the newest first."""
    found = (runs_home() / ".advice").glob("*/plan.json")
    return [p.parent.name for p in sorted(found, key=lambda p: p.stat().st_mtime, reverse=True)]


def adviser_of(run: str) -> str | None:
    """Return the name of the adviser that a trial run belongs to; None for other runs."""
    found = re.fullmatch(r"(.+)-[0-9a-f]{6}-e\d+-s\d+", run)
    return found[1] if found is not None and (runs_home() / ".advice" / found[1]).is_dir() else None


def is_trial(run: str) -> bool:
    """Return whether a run of this name is a trial of an adviser."""
    return adviser_of(run) is not None


def load_plan(name: str) -> Plan | None:
    """Load the plan of an adviser; None if there is none. Raises BadSetting for a damaged one."""
    path = folder_of(name) / "plan.json"
    try:
        return Plan.from_dict(json_files.read_object(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadSetting(
            "{path} is damaged or of an earlier version ({error}); remove its folder to start again",
            path=path,
            error=error,
        ) from None


def save_plan(plan: Plan) -> None:
    """Write the plan into the adviser's folder. A restarted adviser follows it."""
    json_files.write_json(folder_of(plan.name) / "plan.json", plan.to_dict())


# --- its answer --------------------------------------------------------------------------------------


class AnswerRow(TypedDict):
    """A candidate or a reference (0 epochs) with its scores on the held-out images. `basis` explains the interval;
    `is_chosen` marks the recommended row."""

    label: str
    settings: dict[str, object]
    is_default: bool
    is_chosen: bool
    value: float | None
    epochs: int
    seeds: int
    values: list[float]
    mean: float
    interval: tuple[float, float] | None
    basis: str
    seconds: float
    runs: list[str]


class Answer(TypedDict):
    """The answer so far; `done` is true after the evaluation on test images. `comparisons` are sentences that support
    the verdict, `recommended` is the row to train for longer, `test` is a sentence on the test images."""

    plan: dict[str, object]
    rows: list[AnswerRow]
    references: list[AnswerRow]
    verdict: str
    is_shown: bool
    comparisons: list[str]
    recommended: AnswerRow | None
    untried: list[str]
    failed: dict[str, str]
    test: str
    done: bool


def read_answer(name: str) -> Answer | None:
    """Read the answer so far; None before the first scored run, or for a damaged or older file."""
    try:
        found = json_files.read_object(folder_of(name) / "answer.json")
        return Answer(**found) if found.keys() >= Answer.__required_keys__ else None  # type: ignore[typeddict-item]
    except (OSError, ValueError):
        return None


def trial_score(run: str) -> float | None:
    """Return the kNN accuracy (0 to 1) of an adviser's trial on the held-out images; None for other runs and for trials
    without a score."""
    name = adviser_of(run)
    with contextlib.suppress(OSError, ValueError, TypeError):  # missing or damaged
        share = None if name is None else _trial_score(folder_of(name) / "scores" / f"{run}.json")
        return float(share) if share is not None and math.isfinite(share) else None
    return None


_trial_score = FileCache(lambda path: json_files.read_object(path).get("knn"), 5000)
