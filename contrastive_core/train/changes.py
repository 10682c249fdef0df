"""Changes of settings during a training, and new runs that branch off a saved state.

The first process logs a change before the step that uses it, so the values of a step are a function of the settings and
the log, and a resume applies logged changes again at their steps."""

import contextlib
import dataclasses
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from safetensors.torch import load

from contrastive_core import losses, methods, runs
from contrastive_core.base import json_files
from contrastive_core.base.errors import BadSetting, Damaged
from contrastive_core.base.messages import N_, message
from contrastive_core.base.storage import FileStamp, file_stamp
from contrastive_core.losses import Loss
from contrastive_core.ops import collectives
from contrastive_core.runs import checkpoints
from contrastive_core.runs.changes import Live, checked, live_settings, saved_epochs
from contrastive_core.runs.checkpoints import PlainState
from contrastive_core.runs.records import Change, Request
from contrastive_core.runs.run import Run
from contrastive_core.train.settings import nothing_to_learn
from contrastive_core.train.setup import TrainSetup

LOOK_SECONDS = 0.05  # between two looks at the file of requests
OWN = (  # entries of run.json that `create` makes
    "format id name created config method loss dataset seed threads versions git_commit data_fingerprint schedule "
    "branch"
).split()


def live_settings_of(config: Mapping[str, Any]) -> dict[str, Live]:
    """Return the settings that can be changed during a training with this config. Args: config: resolved."""
    return live_settings(config, losses.knobs(str(config.get("loss"))), methods.knobs(str(config.get("method"))))


def branch(run: Run, *every: Mapping[str, object], epoch: int | None = None) -> list[Run]:
    """Create stopped runs that continue from one state of `run` before its end, each with changed values (`every`) from
    the next step on. `epoch`: that of the state; None: the newest. Raises: BadSetting; ValueError if no such state is
    kept."""
    config, live = run.config, live_settings_of(run.config)
    checked_values = [{name: checked(live, name, to) for name, to in values.items()} for values in every]
    kept = saved_epochs(run)
    states = checkpoints.state_manifests(run) if epoch is None else [kept[epoch]] if epoch in kept else []
    for manifest in reversed(states):
        try:
            data, plain = checkpoints.read_state(manifest)
        except Damaged:  # or replaced by a newer one meanwhile
            continue
        if plain["place"]["epoch"] < int(config.get("epochs") or 0):
            return [_branch(run, new, data, plain) for new in checked_values]
    text = N_("{name} has no saved state before its end to branch from; train it again with --schedule")
    if run.status()["status"] in ("running", "queued"):
        text = N_("{name} has not saved an epoch yet; try again after its next epoch")
    if epoch is not None:
        text = checkpoints.NO_STATE
    raise ValueError(message(text, name=run.name, epoch=epoch, kept=", ".join(map(str, kept)) or "–"))


def _branch(run: Run, new: Mapping[str, float], data: bytes, plain: PlainState) -> Run:
    """Create a stopped run with this state."""
    config, epochs = run.config, int(run.config.get("epochs") or 0)
    step, epoch = plain["place"]["step"], plain["place"]["epoch"]
    about = {key: value for key, value in run.manifest.items() if key not in OWN}
    about |= {"branch": {"run": run.name, "step": step, "epoch": epoch}}
    about |= {"schedule": [{"step": step + 1, "name": name, "to": to} for name, to in new.items()]}
    settings = "-".join(f"{name.removeprefix('loss.')}{to:g}" for name, to in new.items())
    name = runs.free_name(re.sub(r"[^A-Za-z0-9._-]+", "-", f"{run.name[:30]}-{settings or 'branch'}"))
    made = runs.create(name, config, str(run.manifest.get("data_fingerprint") or ""), **about)
    made.append_metrics(line for line in run.metrics() if line.get("step", 0) <= step)
    for number in run.snapshots():
        if number <= epoch:
            made.write(f"snapshots/{run.snapshot_path(number).name}", run.snapshot_path(number).read_bytes())
    made.append_changes(plain.get("changes") or [])
    checkpoints.save_state(made, load(data), plain)
    reason = message("branched off {name} after epoch {epoch}; resume it to continue", name=run.name, epoch=epoch)
    made.set_status("stopped", reason, epoch=epoch, epochs=epochs, step=step)
    return made


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
        asked = [one for one in self._planned if one["step"] <= step]
        if (now := time.monotonic()) >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            if (stamp := file_stamp(self.run.path / "requests.jsonl")) != self._stamp:
                self._stamp = stamp
                asked += self.run.requests()
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
