"""The adviser's plan and its folder, as pages show them. What it answers is in advice_answer.py."""

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, join, message
from contrastive_core.paths import runs_home
from contrastive_core.records.runs import checked_name
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject

START = "start"  # the question whether to train at all, which is asked alone
QUESTIONS = {
    "temperature": N_("how sharp the softmax is (or, of a margin loss, how wide the margin)"),
    "method": N_("pairs that are compared"),
    "augmentation": N_("positive views"),
    "head": N_("layers between the encoder and the loss"),
    "batch": N_("how many images are compared at once"),
    START: N_("whether to train at all: raw pixels, a frozen encoder, going on from it, or training from scratch"),
}
CRITERIA = {"knn": N_("kNN on held-out images"), "lidar": N_("LiDAR of held-out images")}
AGREEMENT = N_(  # benchmarks/adviser.py: seven temperatures, three seeds each
    "LiDAR replaces labels. Over temperatures its rank correlation with kNN was +0.74 on digits, +0.76 on six "
    "animals and +0.57 on ten classes of CIFAR-10 (RankMe: +0.62, +0.77 and +0.88). It is a hint, not a proof."
)
WITHOUT_LABELS = N_(  # shapes, SimCLR with and without color steps
    "Without labels only the temperature can be chosen, because scores without labels can reward a bad encoder. On "
    "shapes, SimCLR without color steps has LiDAR 58 and RankMe 62; the default has 41 and 29. But its kNN accuracy "
    "is 16.6 %, against 59.8 %."
)
TEST_IMAGES = N_("The test images are evaluated once, at the end, for the winner and the default.")
OPTIONS = {  # what an adviser can answer, the cheapest first
    "pixels": N_("raw pixels are enough"),
    "frozen": N_("a frozen encoder is enough"),
    "continue": N_("continue training the frozen encoder"),
    "scratch": N_("train from scratch"),
}
ETA = 3  # of the settings tried for so long, one in three goes on for three times as long
SEEDS = (0, 1, 2)
OVERHEAD = 2.0  # seconds around a training: loading the images, and scoring it
FINALISTS = 2  # settings besides the default that are trained with every seed


@dataclass(frozen=True)
class Plan:
    """The plan of an adviser: settings, time limit and held-out images; JSON in, JSON out."""

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
    frozen: tuple[str, ...] = ()  # encoders that are judged as they are, as a user writes them
    paces: Mapping[str, float] = field(default_factory=dict)  # seconds per epoch by method, where methods are chosen
    left_out: Mapping[str, str] = field(default_factory=dict)  # why methods do not fit the data, by title
    methods: tuple[str, ...] = ()  # to choose from, where a person named them; (): all that fit

    @property
    def criterion(self) -> str:
        return "knn" if self.labeled else "lidar"

    @property
    def is_curve(self) -> bool:
        """Whether one number is chosen: a few places, each for all epochs, then say more than many for a few epochs,
        since what lies between follows from its neighbors."""
        return self.choose == ("temperature",)

    @property
    def is_methods(self) -> bool:
        """Whether it chooses among methods alone: at equal epochs and at equal time."""
        return self.choose == ("method",) and bool(self.paces)

    @property
    def is_start(self) -> bool:
        """Whether it asks if training is worth it at all."""
        return self.choose == (START,)

    @property
    def seconds(self) -> float:
        return 60 * self.minutes

    def expected(self) -> float:
        """Seconds that all trials and the seeds of the finalists take."""
        if self.is_methods:
            return method_duration(self, self.rungs[-1])
        return duration(self.trials, self.rungs, self.seconds_per_epoch, len(self.seeds))

    def sentence(self) -> str:
        """Describe the tries, the time and the held-out images."""
        if self.is_start:
            return join(" ", self._start_sentences())
        if self.is_methods:
            return join(" ", self._method_sentences())
        first, *later = self.rungs
        values = {"trials": self.trials, "choose": ", ".join(self.choose), "dataset": self.dataset}
        said: list[str] = [message("Tries {trials} settings of {choose} on {dataset}.", **values)]
        if self.labels and self.is_curve:
            ends = sorted(self.labels, key=lambda label: float(label.rpartition(" ")[2]))
            said.append(message("They are between {low} and {high}.", low=ends[0], high=ends[-1]))
        elif self.labels:
            said.append(message("These are: {labels}.", labels=join("; ", self.labels)))
        if self.batch_size is not None:
            said.append(message("All train in batches of {batch_size}.", batch_size=self.batch_size))
        said.append(message("Each setting is trained for {rungs} epochs.", rungs=first))
        said += [message("The best third goes on to {epochs} epochs.", epochs=epochs) for epochs in later]
        values = {"finalists": FINALISTS, "seeds": len(self.seeds)}
        said.append(message("The best {finalists} and the default are tried with {seeds} seeds.", **values))
        said.append(self._duration_sentence())
        values = {"held_out": f"{self.held_out:,}", "train": f"{self.train + self.held_out:,}"}
        text = N_("{held_out} of {train} training images are held out to compare settings by {criteria}.")
        said.append(message(text, **values, criteria=CRITERIA[self.criterion]))
        return join(" ", [*said, TEST_IMAGES if self.labeled else AGREEMENT])

    def _start_sentences(self) -> list[str]:
        """What the question whether to train takes."""
        count = len(self.frozen)
        said: list[str] = [
            message(
                "Compares raw pixels, frozen encoders ({count}), going on from the best of these, and training from "
                "scratch with {method} on {dataset}.",
                count=count,
                method=self.method,
                dataset=self.dataset,
            )
            if count
            else message(
                "Compares raw pixels and training from scratch with {method} on {dataset}. No frozen encoder is named.",
                method=self.method,
                dataset=self.dataset,
            )
        ]
        values = {"epochs": self.rungs[-1], "seeds": len(self.seeds), "minutes": f"{self.minutes:g}"}
        said.append(
            message(
                "Each training has {seeds} seeds and at most {epochs} epochs. Fewer are used if {minutes} min "
                "require it.",
                **values,
            )
        )
        values = {"held_out": f"{self.held_out:,}", "train": f"{self.train + self.held_out:,}"}
        text = N_("{held_out} of {train} training images are held out to compare them by {criteria}.")
        return [*said, message(text, **values, criteria=CRITERIA[self.criterion])]

    def _method_sentences(self) -> list[str]:
        """What the choice among methods takes."""
        count, names = len(self.labels), join(", ", self.labels)
        said: list[str] = [
            message("Compares {count} methods on {dataset}: {names}.", count=count, dataset=self.dataset, names=names)
        ]
        if self.left_out:
            why = join("; ", [message("{name}: {why}", name=k, why=v) for k, v in self.left_out.items()])
            said.append(message("Left out: {why}.", why=why))
        epochs = self.rungs[-1]
        seconds = f"{epochs * self.seconds_per_epoch:.0f}"
        values = {"epochs": epochs, "seconds": seconds, "finalists": FINALISTS, "seeds": len(self.seeds)}
        said.append(
            message(
                "Each is trained for {epochs} epochs, and once more for the time that the default takes, about "
                "{seconds} s.",
                **values,
            )
        )
        said.append(message("The best {finalists} and the default are tried with {seeds} seeds.", **values))
        values = {"held_out": f"{self.held_out:,}", "train": f"{self.train + self.held_out:,}"}
        text = N_("{held_out} of {train} training images are held out to compare them by {criteria}.")
        said.append(message(text, **values, criteria=CRITERIA[self.criterion]))
        said.append(self._duration_sentence())
        if (least := least_duration(self)) > self.seconds:
            text = N_("{seeds} seeds of two methods alone take about {least} min, so this time cannot decide.")
            said.append(message(text, seeds=len(self.seeds), least=math.ceil(least / 60)))
        return said

    def _duration_sentence(self) -> str:
        """How long the trials take, and what happens to those that do not fit."""
        seconds = self.expected()
        minutes = message("{seconds} min", seconds=f"{seconds / 60:.0f}") if seconds >= 60 else f"{seconds:.0f} s"
        values = {"minutes": minutes, "self_minutes": f"{self.minutes:g}"}
        if seconds <= self.seconds:
            return message("All of it takes about {minutes} of {self_minutes} min.", **values)
        return message(
            "Everything would take about {minutes}. The adviser tries what fits into {self_minutes} min and lists "
            "the rest.",
            **values,
        )

    def base(self) -> dict[str, object]:
        """Settings that all tries share."""
        return {} if self.batch_size is None else {"batch_size": self.batch_size}

    def to_json(self) -> dict[str, object]:
        return dataclasses.asdict(self)


def duration(trials: int, rungs: tuple[int, ...], seconds_per_epoch: float, seeds: int) -> float:
    """Seconds of successive halving over so many settings, and of the finalists' other seeds."""
    total, left = 0.0, trials
    for number, epochs in enumerate(rungs):
        count = left + (number > 0)  # the default goes all the way
        total += count * (epochs * seconds_per_epoch + OVERHEAD)
        left = math.ceil(left / ETA)
    last = rungs[-1] * seconds_per_epoch + OVERHEAD
    return total + (seeds - 1) * min(FINALISTS + 1, trials) * last


def epochs_in_time(plan: Plan, method: str, epochs: int) -> int:
    """Epochs that a method gets in the time that the default takes for `epochs`."""
    pace = plan.paces.get(method, plan.seconds_per_epoch)
    return max(1, round(epochs * plan.paces.get(plan.method, plan.seconds_per_epoch) / max(pace, 1e-9)))


def _method_costs(plan: Plan, epochs: int) -> dict[str, float]:
    """Seconds of a try of each method with one seed, at equal epochs and at equal time."""
    costs = {}
    for method, pace in plan.paces.items():
        tries = {epochs, epochs_in_time(plan, method, epochs)}
        costs[method] = sum(count * pace + OVERHEAD for count in tries)
    return costs


def method_duration(plan: Plan, epochs: int) -> float:
    """Seconds of a try of each method at equal epochs and at equal time, and of the finalists' other seeds."""
    costs = _method_costs(plan, epochs).values()
    later = (len(plan.seeds) - 1) * min(FINALISTS + 1, len(costs))
    return sum(costs) + later * (sum(costs) / max(1, len(costs)))


def least_duration(plan: Plan) -> float:
    """Seconds of all seeds of the default and of the quickest other method: less decides nothing."""
    costs = _method_costs(plan, plan.rungs[-1])
    others = [cost for method, cost in costs.items() if method != plan.method]
    return len(plan.seeds) * (costs.get(plan.method, 0.0) + min(others, default=0.0))


def folder_of(name: str) -> Path:
    """The folder of an adviser's files."""
    return runs_home() / ".advice" / checked_name(name)


def lock_of(name: str) -> Path:
    """The lock that a working adviser holds."""
    return folder_of(name) / "lock"


def adviser_names() -> list[str]:
    """Advisers that were begun, the newest first."""
    found = (runs_home() / ".advice").glob("*/plan.json")
    return [p.parent.name for p in sorted(found, key=lambda p: p.stat().st_mtime, reverse=True)]


def is_trial(run: str) -> bool:
    """Whether a run of that name is one of an adviser's tries: many, and rarely looked at."""
    return adviser_of(run) is not None


def adviser_of(run: str) -> str | None:
    """The adviser whose try a run of that name is; None of another run."""
    found = re.fullmatch(r"(.+)-[0-9a-f]{6}-e\d+-s\d+", run)
    return found[1] if found is not None and (runs_home() / ".advice" / found[1]).is_dir() else None


def load_plan(name: str) -> Plan | None:
    """The plan of an adviser that was begun; None where there is none. Raises BadSetting for a damaged one."""
    path = folder_of(name) / "plan.json"
    try:
        return plan_from_json(json_files.read_object(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise BadSetting(
            "{path} is damaged ({error}); remove its folder to start again", path=path, error=error
        ) from None


def plan_from_json(raw: Mapping[str, Any]) -> Plan:
    """The plan that `to_json` wrote. Raises TypeError for anything else."""
    values: JsonObject = {f.name: raw[f.name] for f in dataclasses.fields(Plan) if f.name in raw}
    values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Plan(**values)


def save_plan(plan: Plan) -> None:
    """Write it into the adviser's folder: whoever starts the adviser of this name follows it."""
    json_files.write_json(folder_of(plan.name) / "plan.json", plan.to_json())
