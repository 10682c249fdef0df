"""Changes of a running training, applied between two steps, on every process at the same step.

The first process writes a change to the run's log before the step that uses it. The values of a step are therefore a
function of the settings and the log, and a resume applies logged changes again at their steps. New requests wait until
then. The log names each request, so it is applied only once."""

import contextlib
import dataclasses
import secrets
import time
from collections.abc import Sequence
from typing import cast

from contrastive_core.base import json_files
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import message
from contrastive_core.base.safe_files import FileStamp, file_stamp
from contrastive_core.losses import Loss
from contrastive_core.ops import collectives
from contrastive_core.runs.branch import live_settings_of
from contrastive_core.runs.changes import Change, Request, checked
from contrastive_core.runs.run import Run
from contrastive_core.train.checks import nothing_to_learn
from contrastive_core.train.setup import TrainSetup

LOOK_SECONDS = 0.05  # between two looks at the file of requests


class LiveChanges:
    """Finds, logs and applies changes of settings during training."""

    def __init__(self, setup: TrainSetup, run: Run) -> None:
        """`values`: the settings of the next step by name; `lr`: the learning rate before its schedule."""
        self.setup, self.run, self.writes = setup, run, setup.world.is_rank0
        self.live = live_settings_of(setup.config.to_dict())
        self.values = {name: setting.start for name, setting in self.live.items()}
        self.taken: list[Change] = []
        self._coming: list[Request] = []  # that a resume takes again
        self._planned: list[Request] = []
        self._known: set[str] = set()  # ids that are logged, or cannot be taken
        self._stamp: FileStamp | None = None
        self._next_look = 0.0

    def start(self, step: int, saved: Sequence[Change] = ()) -> str:
        """Begin after `step` steps with the changes of the `saved` state, and apply those that are due. Returns a note
        if logged changes were withdrawn."""
        note = self._read(step, saved) if self.writes else ""
        self.values, self.taken, note = collectives.broadcast_object((self.values, self.taken, note))
        if self.taken:
            self._apply()
        self.take(step + 1, collectives.broadcast_object(self.due(step + 1)))
        return note

    def _read(self, step: int, saved: Sequence[Change]) -> str:
        logged, settings = self.run.logged_changes(), self.run.config
        every = sorted({one["id"]: one for one in [*saved, *logged]}.values(), key=lambda one: one["step"])
        is_same_loss = settings.get("loss") == self.setup.config.loss
        before = live_settings_of(settings) if is_same_loss else {}
        new = {n: v for n, v in self.values.items() if n in before and before[n].start != v}  # --set of this resume
        self.values |= {name: before[name].start for name in new}
        is_diverged = bool(self.run.status().get("is_diverged"))
        later = [one for one in every if one["step"] > step and not one.get("withdrawn")]
        gone = [one for one in later if is_diverged or one["name"] in new or one["name"] not in self.live]
        for one in gone:
            one["withdrawn"] = True
        if gone or every != logged:
            self.run.write("changes.jsonl", json_files.lines_bytes(map(dict, every)))
        valid = [one for one in every if not one.get("withdrawn") and one["name"] in self.live]
        self.taken = [one for one in valid if one["step"] <= step]
        self.values |= {one["name"]: one["to"] for one in self.taken}
        resets = {name: to for name, to in new.items() if to != self.values[name]}
        self._coming = [{"id": secrets.token_hex(8), "step": step + 1, "name": n, "to": to} for n, to in resets.items()]
        self._coming += [cast(Request, one) for one in valid if one["step"] > step]
        self._known = {one["id"] for one in every}
        planned = enumerate(self.run.manifest.get("schedule") or [])
        self._planned = [{"id": key, **one} for n, one in planned if (key := f"schedule-{n}") not in self._known]
        return message("changes after step {step} were withdrawn", step=step) if gone else ""

    def due(self, step: int) -> list[Request]:
        """Return the changes to apply before `step` (from 1), on the first process only."""
        if not self.writes:
            return []
        if self._coming:
            due = [one for one in self._coming if one["step"] <= step]
            self._coming = self._coming[len(due) :]
            return due
        asked = [one for one in self._planned if one["step"] <= step] + self._requests()
        self._planned = [one for one in self._planned if one["step"] > step] if asked else self._planned
        found, values = list[Request](), dict(self.values)
        for one in asked:
            key, name = one["id"], one["name"]
            if key not in self._known:
                self._known.add(key)
                with contextlib.suppress(BadSetting):  # a line that no page has written
                    changed = {**values, name: checked(self.live, name, one["to"])}
                    if not nothing_to_learn(self._loss(changed)):
                        found.append({"id": key, "name": name, "to": changed[name]})
                        values = changed
        return found

    def _requests(self) -> list[Request]:
        """Return new lines of the file of requests, which is read at intervals."""
        if (now := time.monotonic()) < self._next_look:
            return []
        self._next_look = now + LOOK_SECONDS
        if (stamp := file_stamp(self.run.path / "requests.jsonl")) == self._stamp:
            return []
        self._stamp = stamp
        return self.run.requests()

    def take(self, step: int, due: Sequence[Request]) -> None:
        """Log the changes that are `due`, then apply them before `step`. All processes call it. Raises Gone;
        OSError."""
        if not due:
            return
        values, changes = dict(self.values), []
        for one in due:
            changes.append(cast(Change, {"from": values[one["name"]], **one, "step": step}))
            values[one["name"]] = one["to"]
        new = [change for change, one in zip(changes, due, strict=True) if "from" not in one]
        if self.writes and new:
            self.run.check_present()
            self.run.append_changes(new)
        self.values, self.taken = values, [*self.taken, *changes]
        self._apply()

    def _apply(self) -> None:
        self.setup.method.loss = self._loss(self.values)

    def _loss(self, values: dict[str, float]) -> Loss:
        """Return the loss with these values of its knobs."""
        knobs = {name.removeprefix("loss."): to for name, to in values.items() if name.startswith("loss.")}
        return dataclasses.replace(self.setup.loss, **knobs)
