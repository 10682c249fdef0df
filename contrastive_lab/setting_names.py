"""Settings of a training as pages name them: "smallest crop", never `recipe.crop_low`."""

from __future__ import annotations

from typing import Any

from contrastive_lab import locale
from contrastive_lab.locale import N_, _

NAMES = {
    "lr": N_("learning rate"),
    "warmup": "warm-up",
    "clip": N_("gradient clipping"),
    "loss_knobs": N_("settings of the loss"),
    "method_knobs": N_("settings of the method"),
    "encoder_knobs": N_("settings of the encoder"),
    "recipe": "augmentations",
    "temperature": N_("temperature τ"),
    "margin": N_("margin ε"),
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
    "solarize_from": N_("solarized from"),
    "noise_sigma": N_("strength of the noise"),
    "cutout_size": N_("side of the cutout"),
    "order": N_("order of steps"),
}
VALUES = {
    "adamw": "AdamW",
    "sgd": "SGD",
    "lars": "LARS",
    "one_cycle": N_("one cycle"),
    "active": N_("those that are active"),
}

OF_STEP = {
    "crop_low": "crop",
    "crop_high": "crop",
    "crop_aspect": "crop",
    "rotation_degrees": "rotation",
    "blur_low": "blur",
    "blur_high": "blur",
    "brightness": "jitter",
    "contrast": "jitter",
    "saturation": "jitter",
    "hue": "jitter",
    "solarize_from": "solarize",
    "noise_sigma": "noise",
    "cutout_size": "cutout",
}  # what a step is like: told where the step is on

WORDS = (  # names and values of settings, and stages, that are shown as they are
    N_("denominator"),
    N_("normalize"),
    N_("all"),
    N_("own"),
    N_("mine"),
    N_("shipped"),
    N_("setting"),
    N_("value"),
    N_("why"),
    N_("run"),
    N_("epochs"),
    N_("progress"),
    N_("compared"),
    N_("labels"),
    N_("needed"),
    N_("class"),
    N_("example"),
    N_("own positive"),
    N_("paper"),
    N_("metric cosine"),
    N_("metric euclidean"),
    N_("By kNN"),
    N_("press Run or Step"),
    N_("pictures"),
    N_("table"),
    N_("undecided"),
    N_("trained"),
    N_("created"),
    N_("origin"),
    N_("done"),
    N_("running"),
    N_("failed"),
    N_("stopped"),
    N_("here"),
    N_("review"),
    N_("temperature"),
    N_("view"),
    N_("image"),
    N_("encoder"),
    N_("head"),
    N_("enqueue"),
    N_("optimizer"),
    N_("schedule"),
    N_("warm-up"),
    N_("augmentations"),
    N_("mirror"),
    N_("grayscale"),
    N_("hue"),
    N_("brightness"),
    N_("contrast"),
    N_("saturation"),
    N_("rotation"),
    N_("blur"),
    N_("noise"),
    N_("crop"),
    N_("cutout"),
    N_("sobel"),
    N_("Comparing"),
    N_("embedding"),
    N_("detach"),
    N_("mining"),
    N_("symmetric"),
    N_("shuffle"),
    N_("augmented"),
    N_("context"),
    N_("form"),
    N_("distance"),
    N_("views"),
    N_("cosine"),
    N_("euclidean"),
    N_("line"),
    N_("matrix"),
    N_("three"),
    N_("seeds"),
    N_("better"),
    N_("95 % of the curve"),
    N_("curve through all runs"),
)


def shown_name(key: str) -> str:
    """A setting in words; one within a group, as `recipe.blur`, behind the group's name."""
    return ": ".join(locale.text(NAMES.get(part) or part.replace("_", " ")) for part in key.split("."))


def shown_value(value: Any) -> str:
    """Its value: a group's settings that are on with their names, numbers without idle digits."""
    if isinstance(value, dict):
        on = {k: v for k, v in value.items() if v not in (0, "", None)}
        on = {k: v for k, v in on.items() if OF_STEP.get(k, k) in on or OF_STEP[k] not in value}
        return "; ".join(f"{shown_name(k)} {shown_value(v)}" for k, v in on.items())
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, float):
        return f"{value:.4g}"
    return locale.text(VALUES.get(str(value)) or str(value).replace("_", " "))
