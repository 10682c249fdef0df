"""What the adviser will try, within how long, and what it sets aside: said before it starts."""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrastive_core.advice import judge
from contrastive_core.advice.space import Candidate, candidates, check_questions
from contrastive_core.advice.suggestions import USUAL_BATCH, batch_of
from contrastive_core.data.datasets import Dataset
from contrastive_core.errors import BadSetting
from contrastive_core.jobs import queue
from contrastive_core.paths import runs_home
from contrastive_core.runs import checked_name
from contrastive_core.storage import records

__all__ = [
    "ETA",
    "FINALISTS",
    "OVERHEAD",
    "RESERVE",
    "SPREAD",
    "Plan",
    "fitting_batch",
    "folder_of",
    "free_name",
    "is_trial",
    "load",
    "lock_of",
    "make",
    "names",
    "of_json",
    "read_answer",
    "save",
    "settings_of",
]

ETA = 3  # of the settings tried for so long, one in three goes on for three times as long
SHORTEST = 2  # epochs of a first try at least
SEEDS = (0, 1, 2)
# Seconds around a training: its start, and judging it (jobs/fork_server is there on Linux only).
OVERHEAD = 2.0 if sys.platform == "linux" else 8.0
SPREAD = 4  # places of a curve that are tried, for all epochs, before anything is repeated
FINALISTS = 2  # settings besides the default that are trained with every seed
RESERVE = 0.95  # of the time asked for; the rest is for the test images and the answer


@dataclass(frozen=True)
class Plan:
    """Everything that the search follows; JSON in, JSON out."""

    name: str
    dataset: str
    root: str | None
    method: str
    choose: tuple[str, ...]
    minutes: float
    rungs: tuple[int, ...]  # epochs of a first, a second, … and the last try
    trials: int  # settings that are tried first, one question at a time
    train: int
    held_out: int
    labeled: bool
    seconds_per_epoch: float
    device: str = "auto"
    seeds: tuple[int, ...] = SEEDS
    batch_size: int | None = None  # of every try, where the usual one leaves too few steps
    labels: tuple[str, ...] = ()  # of what is tried, the default first

    @property
    def criterion(self) -> str:
        return "knn" if self.labeled else "lidar"

    @property
    def is_curve(self) -> bool:
        """Whether all that is chosen is one number: a few places, each for all epochs, then say
        more than many for a few epochs, since what lies between follows from its neighbors."""
        return self.choose == ("temperature",)

    @property
    def seconds(self) -> float:
        return 60 * self.minutes

    def expected(self) -> float:
        """Seconds that it will take: of all trials, of the seeds of the finalists."""
        return _expected(self.trials, self.rungs, self.seconds_per_epoch, len(self.seeds))

    def sentence(self) -> str:
        """What will be tried, how long, and what is set aside."""
        said = [f"Tries {self.trials} settings of {', '.join(self.choose)} on {self.dataset}."]
        if self.labels and not self.is_curve:
            said.append(f"These are: {'; '.join(self.labels)}.")
        if self.batch_size is not None:
            said.append(f"All train in batches of {self.batch_size}.")
        said.append(f"Each is trained for {self.rungs[0]} epochs.")
        said += [f"The best third goes on to {epochs} epochs." for epochs in self.rungs[1:]]
        said.append(f"The best {FINALISTS} and the default are tried with {len(self.seeds)} seeds.")
        expected = self.expected()
        said.append(
            f"All of it takes about {_minutes(expected)} of {self.minutes:g} min."
            if expected <= self.seconds
            else f"All of it takes about {_minutes(expected)}; what fits into {self.minutes:g} min "
            "is tried, and the answer says what was not."
        )
        said.append(
            f"{self.held_out:,} of {self.train + self.held_out:,} training images are set aside, "
            f"and settings are judged by {judge.CRITERIA[self.criterion]}."
        )
        said.append(
            "The test images are looked at once, at the end, for the winner and the default."
            if self.labeled
            else judge.AGREEMENT
        )
        return " ".join(said)

    def base(self) -> dict[str, Any]:
        """Settings that all tries share."""
        return {} if self.batch_size is None else {"batch_size": self.batch_size}

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def _expected(trials: int, rungs: tuple[int, ...], epoch: float, seeds: int) -> float:
    """Seconds of successive halving over so many settings, and of the finalists' other seeds."""
    total, left = 0.0, trials
    for number, epochs in enumerate(rungs):
        count = left + (number > 0)  # the default goes all the way
        total += count * (epochs * epoch + OVERHEAD)
        left = math.ceil(left / ETA)
    last = rungs[-1] * epoch + OVERHEAD
    return total + (seeds - 1) * min(FINALISTS + 1, trials) * last


def make(
    name: str,
    dataset: Dataset,
    method: str,
    choose: list[str],
    minutes: float,
    epochs: int,
    seconds_per_epoch: float,
    root: str | None = None,
    device: str = "auto",
) -> Plan:
    """A plan that fits into the time. Raises BadSetting with the sentence to show: the time is too
    short for one comparison, too few images, a question that has no answer here."""
    if not minutes > 0 or not math.isfinite(minutes):
        raise BadSetting(f"--minutes must be above 0; got {minutes:g}")
    choose = check_questions(choose)
    trials = 1 + sum(len(candidates(q, method, dataset)) - 1 for q in choose)
    if trials < 2:
        raise BadSetting(f"there is nothing to choose: {', '.join(choose)} has one setting here")
    rows = judge.held_out(dataset)
    labels = dataset.labels[dataset.labels >= 0]
    plan = Plan(
        checked_name(name), dataset.name, root, method, tuple(choose), minutes, (epochs,), trials,
        len(dataset) - len(rows), len(rows), len(set(labels.tolist())) > 1, seconds_per_epoch,
        device, batch_size=None if "batch" in choose else fitting_batch(method, dataset),
        labels=_labels(choose, method, dataset),
    )  # fmt: skip
    for most in range(epochs, SHORTEST - 1, -1):
        if plan.is_curve:
            runs = int(RESERVE * plan.seconds / (most * seconds_per_epoch + OVERHEAD))
            first = min(trials, max(SPREAD, runs - (len(SEEDS) - 1) * (FINALISTS + 1)))
            plan = dataclasses.replace(plan, rungs=(most,), trials=first)
            fits = runs >= first
        else:
            plan = dataclasses.replace(plan, rungs=_rungs(most))
            fits = plan.expected() <= RESERVE * plan.seconds
        if fits:
            return plan
    least = _expected(2, (SHORTEST,), seconds_per_epoch, 1)
    if least > RESERVE * plan.seconds:
        raise BadSetting(
            f"{minutes:g} min are too short to compare two settings: it takes about "
            f"{least / 60 / RESERVE:.1f} min here; give it {math.ceil(least / 57)} min or more"
        )
    return plan  # as many as time allows: the search itself looks at the clock


def fitting_batch(method: str, dataset: Dataset) -> int | None:
    """The batch that a first look suggests; None where it is the usual one."""
    from contrastive_core.training.defaults import usual_settings

    usual = int(usual_settings(method, dataset).get("batch_size", USUAL_BATCH))
    best = batch_of(usual, len(dataset))
    return None if best == usual else best


def _labels(choose: list[str], method: str, dataset: Dataset) -> tuple[str, ...]:
    found = [candidates(q, method, dataset) for q in choose]
    usual = ", ".join(one[0].label for one in found)
    return (usual, *(c.label for one in found for c in one[1:]))


def _rungs(epochs: int) -> tuple[int, ...]:
    """Epochs of each round, rising by `ETA`, the last being all."""
    rungs = [epochs]
    while len(rungs) < 3 and round(rungs[0] / ETA) >= SHORTEST:
        rungs.insert(0, round(rungs[0] / ETA))
    return tuple(rungs)


def settings_of(plan: Plan, dataset: Dataset) -> dict[str, list[Candidate]]:
    """Candidates by question."""
    return {q: candidates(q, plan.method, dataset) for q in plan.choose}


def folder_of(name: str) -> Path:
    """Where an adviser's files lie."""
    return runs_home() / ".advice" / checked_name(name)


def lock_of(name: str) -> Path:
    """What the process that is at this adviser holds."""
    return folder_of(name) / "lock"


def names() -> list[str]:
    """Advisers that were begun, the newest first."""
    found = (runs_home() / ".advice").glob("*/plan.json")
    return [p.parent.name for p in sorted(found, key=lambda p: p.stat().st_mtime, reverse=True)]


def free_name(stem: str) -> str:
    """`stem`, or it with a number, so that neither a run nor an adviser has the name."""
    used, name, number = set(names()), queue.free_name(stem), 2
    while name in used:
        name, number = queue.free_name(f"{stem}-{number}"), number + 1
    return name


def is_trial(run: str) -> bool:
    """Whether a run of that name is one of an adviser's tries: many, and rarely looked at."""
    found = re.fullmatch(r"(.+)-[0-9a-f]{6}-e\d+-s\d+", run)
    return found is not None and (runs_home() / ".advice" / found[1]).is_dir()


def load(name: str) -> Plan | None:
    """The plan of an adviser that was begun; None where there is none. Raises BadSetting for a
    damaged one."""
    path = folder_of(name) / "plan.json"
    if not path.exists():
        return None
    try:
        return of_json(records.read_object(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadSetting(f"{path} is damaged ({error}); remove its folder to begin anew") from None


def of_json(raw: dict[str, Any]) -> Plan:
    """What `to_json` made. Raises KeyError or TypeError for anything else."""
    fields = {f.name: raw[f.name] for f in dataclasses.fields(Plan) if f.name in raw}
    fields |= {k: tuple(v) for k, v in fields.items() if isinstance(v, list)}
    return Plan(**fields)


def save(plan: Plan) -> None:
    """Keep it in the adviser's folder: whoever starts the adviser of this name follows it."""
    folder = folder_of(plan.name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    records.write_json(folder / "plan.json", plan.to_json())


def read_answer(name: str) -> dict[str, Any] | None:
    """The answer so far; None before the first judged run, or where it is damaged."""
    try:
        return dict(records.read_object(folder_of(name) / "answer.json"))
    except (OSError, ValueError):
        return None
