"""Runs that branch off another one: they continue from one of its saved states with changed settings."""

import re
from collections.abc import Mapping
from typing import Any

from safetensors.torch import load

from contrastive_core import losses, methods, runs
from contrastive_core.base.errors import Damaged
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import N_, message
from contrastive_core.runs import checkpoints
from contrastive_core.runs.changes import Live, checked, live_settings, saved_epochs
from contrastive_core.runs.run import Run

OWN = (  # entries of run.json that `create` makes
    "format id name created config method loss dataset seed threads versions git_commit data_fingerprint schedule "
    "branch"
).split()


def live_settings_of(config: Mapping[str, Any]) -> dict[str, Live]:
    """Return the settings that can be changed during a training with this config. Args: config: resolved."""
    return live_settings(config, losses.knobs(str(config.get("loss"))), methods.knobs(str(config.get("method"))))


def branch(run: Run, *every: Mapping[str, Any], epoch: int | None = None) -> list[Run]:
    """Create stopped runs that continue from one state of `run` before its end, each with changed values from the next
    step on. Resuming them trains them. Args: every: changed values by name, one mapping per new run; epoch: the epoch
    of the state; None: the newest. Raises: BadSetting for values that cannot be changed; ValueError if no such state is
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
            return [_made(run, new, data, plain) for new in checked_values]
    text = N_("{name} has no saved state before its end to branch from; train it again with --schedule")
    if run.status()["status"] in ("running", "queued"):
        text = N_("{name} has not saved an epoch yet; try again after its next epoch")
    if epoch is not None:
        text = checkpoints.NO_STATE
    raise ValueError(message(text, name=run.name, epoch=epoch, kept=", ".join(map(str, kept)) or "–"))


def _made(run: Run, new: Mapping[str, float], data: bytes, plain: JsonObject) -> Run:
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
