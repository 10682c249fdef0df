"""Displayed names of training settings: "smallest crop" instead of `recipe.crop_low`."""

from collections.abc import Mapping
from typing import Any

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
}
VALUES |= {"one_cycle": N_("one cycle"), "active": N_("those that are active")}
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


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings by their names in files, nested ones as `recipe.blur`."""
    found: dict[str, Any] = {}
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
