"""What follows from a first look, for batch, τ and augmentations: each with its reason, and with
the command that would settle it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

__all__ = ["USUAL_BATCH", "Suggestion", "batch_of", "suggestions"]

USUAL_BATCH = 128  # of `train`, where a method takes no other
STEPS = 8  # of an epoch at least, for which smaller batches are worth having
MANY = 0.15  # share of a batch's negatives that are of the anchor's class
UNEVEN = 5  # times as many images in the largest class as in the smallest
HARMFUL, HARMLESS = 0.5, 0.9  # of what pixels know above chance, what mirrored ones still know


@dataclass(frozen=True)
class Suggestion:
    """A setting, what is suggested for it, why, and what would show whether it is right."""

    setting: str
    text: str
    reason: str
    settle: str
    values: dict[str, Any]  # as `--set` takes them; {} where it is no setting


def suggestions(name: str, facts: dict[str, Any], defaults: dict[str, Any]) -> list[Suggestion]:
    found = [
        _batch(name, facts, defaults),
        _temperature(name, facts, defaults),
        _mirror(name, facts, defaults),
        _color(name, facts, defaults),
        _copied(facts),
        _uneven(facts),
    ]
    return [one for one in found if one is not None]


def _advise(name: str, choose: str) -> str:
    return shlex.join(["contrastive-lab", "advise", name, "--choose", choose, "--minutes", "30"])


def batch_of(usual: int, n: int) -> int:
    """The usual batch, halved until n images give enough steps an epoch."""
    best = usual
    while best > 8 and n // best < STEPS:
        best //= 2
    return best


def _batch(name: str, facts: dict[str, Any], defaults: dict[str, Any]) -> Suggestion:
    usual, n = int(defaults["batch_size"]), facts["train"]
    best = batch_of(usual, n)
    steps = max(1, n // best)
    reasons = [f"{n:,} images give {steps:,} steps an epoch"]
    if best < usual:
        reasons.append(f"the usual {usual} would give {max(1, n // usual)}, too few to learn from")
    same = facts.get("same_class_negatives")
    if same is not None:
        negatives = 2 * best - 2
        reasons.append(f"{same * negatives:.0f} of {negatives} negatives are of the anchor's class")
    values = {"batch_size": best} if best < usual else {}
    return Suggestion("batch_size", f"{best}", "; ".join(reasons), _advise(name, "batch"), values)


def _temperature(name: str, facts: dict[str, Any], defaults: dict[str, Any]) -> Suggestion:
    same = facts.get("same_class_negatives")
    settle = _advise(name, "temperature")
    if same is None:
        why = "without labels nothing says how many negatives are false; the usual range is tried"
        return Suggestion("loss.temperature", "0.05 to 1", why, settle, {})
    share = f"{100 * same:.0f} % of a batch's negatives are of the anchor's own class"
    if same >= MANY:
        why = f"{share}: a low τ puts its push on the nearest ones, many of which are those"
        return Suggestion("loss.temperature", "0.2 to 1", why, settle, {})
    why = f"{share}: few enough for a low τ, which tells near classes apart"
    return Suggestion("loss.temperature", "0.05 to 0.5", why, settle, {})


def _mirror(name: str, facts: dict[str, Any], defaults: dict[str, Any]) -> Suggestion | None:
    if "mirroring_costs" not in facts:
        return None
    on = defaults["recipe"].flip > 0
    figures = (
        f"mirrored, {100 * facts['mirrored_knn']:.1f} % of {facts['asked']} images are still taken "
        f"for their class by pixels; upright, {100 * facts['pixels_knn']:.1f} %"
    )
    settle = _advise(name, "augmentation")
    kept = _above_chance(facts, "mirrored_knn") / max(1e-9, _above_chance(facts, "pixels_knn"))
    _, low, _ = facts["mirroring_costs"]
    if low <= 0 or kept >= HARMLESS:
        text = "mirroring, as it is" if on else "mirroring may be tried"
        return Suggestion("recipe.flip", text, figures, settle, {})
    if kept >= HARMFUL:
        return Suggestion("recipe.flip", "mirroring is doubtful: try both", figures, settle, {})
    text = "no mirroring" if on else "no mirroring, as it is"
    return Suggestion("recipe.flip", text, figures, settle, {"recipe.flip": 0.0} if on else {})


def _above_chance(facts: dict[str, Any], name: str) -> float:
    return max(0.0, facts[name] - facts["chance"])


def _color(name: str, facts: dict[str, Any], defaults: dict[str, Any]) -> Suggestion | None:
    settle = _advise(name, "augmentation")
    if facts["gray"]:
        return None
    if "color_knn" not in facts:
        return None
    low, chance = facts["color_interval"][0], facts["chance"]
    figures = (
        f"the mean color alone names the class of {100 * facts['color_knn']:.1f} %; "
        f"the most frequent class is {100 * chance:.1f} % of all"
    )
    if low > chance + 0.25 * (1 - chance):
        values = {"recipe.hue": 0.0, "recipe.gray": 0.0}
        return Suggestion("recipe.hue", "no hue shift, no gray", figures, settle, values)
    return Suggestion("recipe.hue", "color steps as usual", figures, settle, {})


def _copied(facts: dict[str, Any]) -> Suggestion | None:
    if not facts["copies_across"] and not facts["alike_across"]:
        return None
    reason = (
        f"{facts['copies_across']:,} test images stand in the training part too, to the last bit; "
        f"{facts['alike_across']:,} of {facts['asked_across']:,} have a training image with almost "
        "the same pixels: test figures come out too high"
    )
    return Suggestion(
        "exclude", "take copies out of one part", reason, "Samples, near-duplicates and leaks", {}
    )


def _uneven(facts: dict[str, Any]) -> Suggestion | None:
    if facts.get("largest", 0) < UNEVEN * max(1, facts.get("smallest", 1)):
        return None
    reason = (
        f"{facts['largest_class']} has {facts['largest']:,} images, {facts['smallest_class']} "
        f"{facts['smallest']:,}: kNN votes for the frequent ones"
    )
    return Suggestion("classes", "read the figures of each class", reason, "Explore, Classes", {})
