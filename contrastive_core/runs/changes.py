"""Changes of a run during training: its learning rate and numeric settings of its loss. Torch-free.

A page or a command adds lines to `requests.jsonl`. The training process reads them between two steps, adds a line to
`changes.jsonl`, and takes the step with the new value. A schedule in `run.json` lists changes by step in advance."""

import contextlib
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from contrastive_core.base import json_files
from contrastive_core.base.errors import BadSetting, Damaged
from contrastive_core.base.json_files import MAX_RECORD
from contrastive_core.base.messages import N_, message
from contrastive_core.base.registry import Knob
from contrastive_core.base.storage import FileCache
from contrastive_core.runs.records import SCHEDULE, Change, Planned
from contrastive_core.runs.run import Run

LR = Knob(1e-3, 0.0, 100.0, log=True)
LEARNED = ("temperature", "bias")  # knobs of a loss that a method may learn
MOST = 2000  # changes of a schedule: run.json is read at each look


def saved_epochs(run: Run) -> dict[int, Path]:
    """Return the manifests of states saved at the end of an epoch before the last, by epoch, ascending."""
    found, epochs = {}, int(run.config.get("epochs") or 0)
    for path in sorted((run.path / "state").glob("*.sha256")):
        with contextlib.suppress(Damaged, OSError, KeyError, TypeError):
            place = _places(path.with_suffix(".json"))
            if not place["batch"] and 0 < place["epoch"] < epochs:
                found[place["epoch"]] = path
    return found


_places = FileCache(lambda path: json_files.read_object(path, limit=MAX_RECORD)["place"], 1000)  # pages ask each second


class Live(NamedTuple):
    """A setting that can be changed during training, with its initial value."""

    knob: Knob
    start: float


def live_settings(
    config: Mapping[str, Any], loss_knobs: Mapping[str, Knob], method_knobs: Mapping[str, Knob]
) -> dict[str, Live]:
    """Return the settings that can be changed during training, by name, with their initial values: `lr`, and numbers
    such as `loss.temperature` that the method does not learn. Args: loss_knobs, method_knobs: the knobs of its loss and
    method."""
    usual = {name: knob.default for name, knob in method_knobs.items()}
    learns = {**usual, **(config.get("method_knobs") or {})}.get("learn_temperature")
    found = {"lr": Live(LR, float(config["lr"]))} if config.get("lr") is not None else {}
    for name, knob in loss_knobs.items():
        value = (config.get("loss_knobs") or {}).get(name, knob.default)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and not (learns and name in LEARNED):
            found[f"loss.{name}"] = Live(knob, value)
    return found


def checked(live: Mapping[str, Live], name: str, value: Any) -> float:
    """Return the value as a number if the setting can be changed to it. Raises BadSetting."""
    if name not in live:
        values = {"name": repr(name), "names": ", ".join(live)}
        raise BadSetting("{name} cannot be changed during training; these settings can: {names}", **values)
    return live[name].knob.check(name, value)  # type: ignore[no-any-return]


def request(run: Run, live: Mapping[str, Live], values: Mapping[str, object]) -> None:
    """Ask the process that trains a run to change settings at its next step. Raises: BadSetting if any value is
    invalid, and nothing is requested then; ValueError if no process trains the run; Gone; OSError."""
    asked = {name: checked(live, name, value) for name, value in values.items()}
    if (status := run.status()["status"]) not in ("running", "queued"):
        why = N_("{name} is not running ({status}), so nothing was changed")
        raise ValueError(message(why, name=run.name, status=status))
    run.check_present()
    lines = ({"id": secrets.token_hex(8), "name": name, "to": value} for name, value in asked.items())
    json_files.append_lines(run.path / "requests.jsonl", lines)


def schedule_of(changes: Iterable[Change]) -> list[Planned]:
    """Convert changes to a schedule for another training."""
    return [{"step": change["step"], "name": change["name"], "to": change["to"]} for change in changes]


def read_schedule(path: str | Path, live: Mapping[str, Live]) -> list[Planned]:
    """Return the schedule in a JSON file, sorted by step: a list of objects with `step` (from 1), `name` and `to`.
    Raises: Damaged; BadSetting; OSError."""
    planned: list[Planned] = json_files.read_json(path, SCHEDULE, MAX_RECORD)
    if len(planned) > MOST:
        values = {"path": path, "count": len(planned), "most": MOST}
        raise BadSetting("{path} has {count} changes; a schedule has at most {most}", **values)
    planned = [{**one, "to": checked(live, one["name"], one["to"])} for one in planned]
    return sorted(planned, key=lambda one: one["step"])


def in_words(changes: Iterable[Change]) -> str:
    """Describe the changes and their steps in one line; "" for none."""
    return ", ".join(f"{c['name']} {c['from']:g} → {c['to']:g} at step {c['step']:,}" for c in changes)


def settings_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the values of `name=value` texts by name. Raises BadSetting."""
    found = {}
    for line in texts:
        name, equals, value = line.partition("=")
        if not equals:
            raise BadSetting("settings must be written as key=value; got {setting}", setting=repr(line))
        found[name.strip().replace("-", "_")] = value.strip()
    return found
