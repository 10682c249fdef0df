"""Training settings as pages show them: names ("smallest crop" instead of `recipe.crop_low`), values, and changes
during the training as text and as marks on curves."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from contrastive_core.base.registry import Catalog
from contrastive_core.engine import catalog
from contrastive_core.runs.changes import live_settings
from contrastive_core.runs.records import Change
from contrastive_core.runs.run import Run
from contrastive_lab import locale
from contrastive_lab.locale import N_, _

NAMES = {
    "lr": N_("learning rate"),
    "warmup": "warm-up",
    "clip": N_("gradient clipping"),
    "amp": N_("mixed precision"),
    "micro_batch": N_("images encoded at a time"),
    "layer_decay": N_("decay of the learning rate per layer"),
    "start_head": N_("head of the starting run"),
    "freeze": N_("frozen encoder"),
    "loss_knobs": N_("settings of the loss"),
    "method_knobs": N_("settings of the method"),
    "encoder_knobs": N_("settings of the encoder"),
    "training_recipe": N_("recipe"),
    "recipe": "augmentations",
    "temperature": N_("temperature τ"),
    "margin": N_("margin ε"),
    "changes": N_("changes while it trained"),
    "average": N_("averaged over"),
    "critic": N_("score function"),
    "bn_splits": N_("parts of BatchNorm"),
    "log_z": N_("logarithm of Z"),
    "dim": N_("width of the head's output (z)"),
    "hidden": N_("hidden width of the head"),
    "depth": N_("depth of the head"),
    "head_bn": N_("BatchNorm in the head"),
    "queue": N_("length of the queue"),
    "momentum": N_("momentum m"),
    "steps": N_("steps ahead"),
    "bank_momentum": N_("momentum of the memory bank"),
    "crop_low": N_("smallest crop"),
    "crop_high": N_("largest crop"),
    "crop_aspect": N_("crop's aspect ratio"),
    "flip": "mirror",
    "rotation_degrees": N_("largest turn, degrees"),
    "jitter": N_("color jitter"),
    "gray": "grayscale",
    "blur_low": N_("smallest blur, pixels"),
    "blur_high": N_("largest blur, pixels"),
    "solarize_from": N_("solarization threshold"),
    "noise_sigma": N_("strength of the noise"),
    "cutout_size": N_("side of the cutout"),
    "order": N_("order of steps"),
}
VALUES = {
    "short": N_("short runs"),
    "cifar": "CIFAR",
    "imagenet": "ImageNet",
    "adamw": "AdamW",
    "sgd": "SGD",
    "lars": "LARS",
    "one_cycle": N_("one cycle"),
    "active": N_("those that are active"),
}
OF_STEP = {
    part: step
    for step, parts in {
        "crop": ("crop_low", "crop_high", "crop_aspect"),
        "rotation": ("rotation_degrees",),
        "blur": ("blur_low", "blur_high"),
        "jitter": ("brightness", "contrast", "saturation", "hue"),
        "solarize": ("solarize_from",),
        "noise": ("noise_sigma",),
        "cutout": ("cutout_size",),
    }.items()
    for part in parts
}  # what a step is like: told where the step is on


def shown_name(key: str) -> str:
    """Return the displayed name of a setting; one in a group, as `recipe.blur`, follows the group's name."""
    return ": ".join(locale.text(NAMES.get(part) or part.replace("_", " ")) for part in key.split("."))


def flat(settings: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return settings by their names in files, nested ones as `recipe.blur`."""
    found: dict[str, object] = {}
    for key, value in settings.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def shown_value(value: Any) -> str:
    """Format a setting's value: for a group the names of settings that are on, for numbers without trailing digits."""
    if isinstance(value, dict):
        on = {k: v for k, v in value.items() if v not in (0, "", None)}
        on = {k: v for k, v in on.items() if OF_STEP.get(k, k) in on or OF_STEP[k] not in value}
        return "; ".join(f"{shown_name(k)} {shown_value(v)}" for k, v in on.items())
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, float):
        return f"{value:.4g}"
    return locale.text(VALUES.get(str(value)) or str(value).replace("_", " "))


def main_setting(run: Run, described: Catalog) -> str:
    """Return the temperature or margin of a run's loss, and its last value if that differs: "τ 0.2"; "" if the loss
    has none or learns it. Args: described: the catalog."""
    config = run.config
    loss, method = described["losses"].get(str(config.get("loss"))), described["methods"].get(str(config.get("method")))
    live = live_settings(config, *(catalog.knobs(entry["knobs"]) if entry else {} for entry in (loss, method)))
    for name in {"loss.temperature", "loss.margin"} & live.keys():
        values = [live[name].start, *(change["to"] for change in run.changes() if change["name"] == name)]
        shown = dict.fromkeys(f"{value:.4g}" for value in (values[0], values[-1]))
        return f"{sign(name)} {' → '.join(shown)}"
    return ""


# --- changes during a training ---------------------------------------------------------------------


LABELED = 4  # marks of a figure that have a text, at most
ROOM = 0.06  # of the axis, between two texts

Marks = Mapping[str, Sequence[tuple[float, str]]]  # by the axis, step or epoch: where, and what changed


def sign(name: str) -> str:
    """Return a short name of a setting."""
    return "τ" if name == "loss.temperature" else shown_name(name.removeprefix("loss."))


def change_text(change: Change) -> str:
    """Describe a change, for example "τ 0.2 → 0.05"."""
    return f"{sign(change['name'])} {change['from']:.4g} → {change['to']:.4g}"


def changes_in_words(changes: Sequence[Change]) -> str:
    """Describe all changes with their steps in one line; "" for none."""
    one = _("{change} at step {step}")
    return ", ".join(one.format(change=change_text(c), step=f"{c['step']:,}") for c in changes)


def marks_of(changes: Sequence[Change], epochs: Sequence[Mapping[str, float]]) -> Marks:
    """Return the marks of changes on curves over steps and over epochs. Args: epochs: lines of a run's metrics."""
    ends = [(0, 0), *((line["step"], line["epoch"]) for line in epochs)]
    steps = [step for step, _epoch in ends]

    def place(step: int) -> float:
        at = min(bisect_left(steps, step), len(ends) - 1)
        (before, first), (after, last) = ends[max(0, at - 1)], ends[at]
        return first + (last - first) * min(1.0, (step - 1 - before) / max(1, after - before))

    return {
        "step": [(c["step"], change_text(c)) for c in changes],
        "epoch": [(place(c["step"]), change_text(c)) for c in changes if len(ends) > 1],
    }


def changes_by_epoch(changes: Sequence[Change], epochs: Sequence[Mapping[str, float]]) -> dict[int, str]:
    """Describe the changes in each epoch that has ended, from its first to its last value. Args: epochs: lines of a
    run's metrics.
    """
    found: dict[int, dict[str, Change]] = {}
    for change in changes:
        if (epoch := next((line["epoch"] for line in epochs if line["step"] >= change["step"]), None)) is not None:
            known = found.setdefault(int(epoch), {})
            first = known.get(change["name"], change)["from"]
            known[change["name"]] = {**change, "from": first}
    return {epoch: " · ".join(map(change_text, known.values())) for epoch, known in found.items()}


def draw_marks(figure: Any, places: Sequence[tuple[float, str]]) -> None:
    """Draw thin vertical lines on a figure at the changes; the newest ones have texts, those close together in one."""
    ends = [trace.x[-1] for trace in figure.data if trace.x is not None and len(trace.x)]
    end = max([*ends, *(x for x, _what in places)], default=0)
    free, labels = math.inf, list[dict[str, Any]]()
    for x, what in places[: -LABELED - 1 : -1]:
        if labels and free - x < ROOM * end:
            labels[-1]["text"] = f"{what}<br>{labels[-1]['text']}"
            continue
        free = x
        label = {"x": x, "y": 1, "yref": "y domain", "text": what, "textangle": -90, "showarrow": False}
        look = {"bgcolor": "rgba(128, 128, 128, 0.85)", "font": {"color": "white", "size": 11}, "borderpad": 3}
        labels.append({**label, **look, "xanchor": "right", "yanchor": "top"})
    style = {"type": "line", "y0": 0, "y1": 1, "yref": "y domain", "line": {"color": "gray", "width": 1}}
    figure.layout.shapes += tuple({**style, "x0": x, "x1": x} for x, _what in places)
    figure.layout.annotations += tuple(labels)
