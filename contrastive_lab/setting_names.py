"""Settings of a training as pages name them: "smallest crop", never `recipe.crop_low`."""

from __future__ import annotations

from typing import Any

from contrastive_lab import words

__all__ = ["shown_name", "shown_value"]

NAMES = {
    "lr": "learning rate", "warmup": "warm-up", "clip": "gradient clipping",
    "loss_knobs": "settings of the loss", "method_knobs": "settings of the method",
    "encoder_knobs": "settings of the encoder", "recipe": "augmentations",
    "temperature": "temperature τ", "margin": "margin ε",
    "average": "averaged over", "critic": "score function", "bn_splits": "parts of BatchNorm",
    "log_z": "logarithm of Z",
    "dim": "width of the head's output (z)", "hidden": "hidden width of the head",
    "depth": "depth of the head", "head_bn": "BatchNorm in the head",
    "queue": "length of the queue", "momentum": "momentum m", "steps": "steps ahead",
    "bank_momentum": "momentum of the memory bank",
    "crop_low": "smallest crop", "crop_high": "largest crop", "crop_aspect": "crop's aspect ratio",
    "flip": "mirror", "rotation_degrees": "largest turn, degrees", "jitter": "color jitter",
    "gray": "grayscale", "blur_low": "smallest blur, pixels", "blur_high": "largest blur, pixels",
    "solarize_from": "solarized from",
    "noise_sigma": "strength of the noise", "cutout_size": "side of the cutout",
    "order": "order of steps",
}  # fmt: skip
VALUES = {"adamw": "AdamW", "sgd": "SGD", "lars": "LARS", "one_cycle": "one cycle",
          "active": "those that are active"}  # fmt: skip

OF_STEP = {
    "crop_low": "crop", "crop_high": "crop", "crop_aspect": "crop",
    "rotation_degrees": "rotation", "blur_low": "blur", "blur_high": "blur",
    "brightness": "jitter", "contrast": "jitter", "saturation": "jitter", "hue": "jitter",
    "solarize_from": "solarize", "noise_sigma": "noise", "cutout_size": "cutout",
}  # what a step is like: told where the step is on  # fmt: skip


def shown_name(key: str) -> str:
    """A setting in words; one within a group, as `recipe.blur`, behind the group's name."""
    return ": ".join(NAMES.get(part) or part.replace("_", " ") for part in key.split("."))


def shown_value(value: Any) -> str:
    """Its value: a group's settings that are on with their names, numbers without idle digits."""
    if isinstance(value, dict):
        on = {k: v for k, v in value.items() if v not in (0, "", None)}
        on = {k: v for k, v in on.items() if OF_STEP.get(k, k) in on or OF_STEP[k] not in value}
        return "; ".join(f"{words.shown(shown_name(k))} {shown_value(v)}" for k, v in on.items())
    if isinstance(value, bool):
        return words.shown("yes" if value else "no")
    if isinstance(value, float):
        return f"{value:.4g}"
    return words.shown(VALUES.get(str(value)) or str(value).replace("_", " "))
