"""Suggestions from a first look for batch, τ and augmentations, with reasons and commands that test them."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from contrastive_core.messages import N_, join, message

USUAL_BATCH = 128  # of `train`, where a method takes no other
STEPS = 8  # of an epoch at least, for which smaller batches are worth having
MEASURED = 0.18  # largest share of same-class negatives for which temperatures were compared (docs/measured.md)
UNEVEN = 5  # times as many images in the largest class as in the smallest
HARMFUL, HARMLESS = 0.5, 0.9  # of what pixels know above chance, what mirrored ones still know


class Facts(TypedDict, total=False):
    """What a first look finds. Class sizes, shares and cosines are missing without classes, colors in gray images."""

    train: int
    test: int
    channels: int
    height: int
    width: int
    labeled: int
    classes: int
    left_out: str
    smallest_class: str
    smallest: int
    largest_class: str
    largest: int
    same_class_negatives: float  # share of a batch's negatives that are of the anchor's class
    copies_in_train: int
    copies_across: int
    alike_across: int
    asked_across: int
    gray: bool
    asked: int
    pixels_knn: float
    pixels_interval: tuple[float, float]
    mirrored_knn: float
    mirroring_costs: tuple[float, float, float]  # with its interval
    chance: float
    same_class_cosine: float
    other_class_cosine: float
    color_knn: float
    color_interval: tuple[float, float]
    random_encoder: float
    batch_size: int


@dataclass(frozen=True)
class Suggestion:
    """A setting, what is suggested for it, why, and what would show whether it is right."""

    setting: str
    text: str
    reason: str
    settle: str
    values: dict[str, Any] = field(default_factory=dict)  # as `--set` takes them; {} where it is no setting


def suggestions(name: str, facts: Facts, defaults: Mapping[str, Any]) -> list[Suggestion]:
    """Return the suggestions that the facts of the data set `name` support."""
    batch, temperature, augmentation = (
        shlex.join(["contrastive-lab", "advise", name, "--choose", question, "--minutes", "30"])
        for question in ("batch", "temperature", "augmentation")
    )
    found = [
        _batch(facts, int(defaults["batch_size"]), bool(defaults["needs_labels"]), batch),
        _temperature(facts, bool(defaults["needs_labels"]), temperature) if defaults["has_temperature"] else None,
        _mirror(facts, defaults["recipe"].flip > 0, augmentation),
        _color(facts, augmentation),
        _copied(facts),
        _uneven(facts),
    ]
    return [one for one in found if one is not None]


def batch_of(usual: int, n: int) -> int:
    """The usual batch, halved until n images give enough steps an epoch."""
    best = usual
    while best > 8 and n // best < STEPS:
        best //= 2
    return best


def _batch(facts: Facts, usual: int, needs_labels: bool, settle: str) -> Suggestion:
    n, best = facts["train"], batch_of(usual, facts["train"])
    steps = max(1, n // best)
    template = N_("{n} images give 1 step an epoch") if steps == 1 else N_("{n} images give {steps} steps an epoch")
    reasons = [message(template, n=f"{n:,}", steps=f"{steps:,}")]
    if best < usual:
        value = max(1, n // usual)
        reasons.append(message("the usual {usual} would give only {value}", usual=usual, value=value))
    if (same := facts.get("same_class_negatives")) is not None:
        of, own = 2 * best - 2, f"{same * (2 * best - 2):.0f}"
        template = N_("{same} of {negatives} negatives are of the anchor's class")
        if needs_labels:
            template = N_("{same} of {negatives} views of other images are of the anchor's class and are its positives")
        reasons.append(message(template, same=own, negatives=of))
    else:
        settle = N_("label some images: without labels no score shows which batch size is better")
    values = {"batch_size": best} if best < usual else {}
    return Suggestion("batch_size", f"{best}", join("; ", reasons), settle, values)


def _temperature(facts: Facts, needs_labels: bool, settle: str) -> Suggestion:
    setting, text = "loss.temperature", N_("0.05 to 1")  # candidates.TEMPERATURES
    if (same := facts.get("same_class_negatives")) is None:
        why = N_("without labels the share of false negatives is unknown; the usual range is tried")
        return Suggestion(setting, text, why, settle)
    if needs_labels:
        why = N_("with labels no negative is false, so the usual range is tried")
        return Suggestion(setting, text, why, settle)
    share = message("{same} % of a batch's negatives are of the anchor's own class", same=f"{100 * same:.0f}")
    if same > MEASURED:
        why = message("{share}, more than in any measured data set: the whole range is tried", share=share)
        return Suggestion(setting, text, why, settle)
    why = message("{share}; with 10 to 17 % on four measured sets, SimCLR was best at τ = 0.05", share=share)
    return Suggestion(setting, text, why, settle)


def _mirror(facts: Facts, is_on: bool, settle: str) -> Suggestion | None:
    if "mirroring_costs" not in facts:
        return None
    figures = message(
        "by pixels, {mirrored_knn} % of {asked} mirrored images are still assigned to their class; unmirrored, "
        "{pixels_knn} %",
        mirrored_knn=f"{100 * facts['mirrored_knn']:.1f}",
        asked=facts["asked"],
        pixels_knn=f"{100 * facts['pixels_knn']:.1f}",
    )
    mirrored, upright = (max(0.0, share - facts["chance"]) for share in (facts["mirrored_knn"], facts["pixels_knn"]))
    kept, values = mirrored / max(1e-9, upright), {}
    if facts["mirroring_costs"][1] <= 0 or kept >= HARMLESS:
        text = N_("mirroring, as by default") if is_on else N_("mirroring may be tried")
    elif kept >= HARMFUL:
        text = N_("mirroring is doubtful: try both")
    elif is_on:
        text, values = N_("no mirroring"), {"recipe.flip": 0.0}
    else:
        text = N_("no mirroring, as by default")
    return Suggestion("recipe.flip", text, figures, settle, values)


def _color(facts: Facts, settle: str) -> Suggestion | None:
    if facts["gray"] or "color_knn" not in facts:
        return None
    chance = facts["chance"]
    figures = message(
        "the mean color alone identifies the class of {color_knn} %; the most frequent class has {chance} %",
        color_knn=f"{100 * facts['color_knn']:.1f}",
        chance=f"{100 * chance:.1f}",
    )
    if facts["color_interval"][0] > chance + 0.25 * (1 - chance):
        values = {"recipe.hue": 0.0, "recipe.gray": 0.0}
        return Suggestion("recipe.hue", N_("no hue shift, no gray"), figures, settle, values)
    return Suggestion("recipe.hue", N_("color steps as usual"), figures, settle)


def _copied(facts: Facts) -> Suggestion | None:
    if not facts["copies_across"] and not facts["alike_across"]:
        return None
    template = N_(
        "{copies_across} test images are bit-identical to training images; {alike_across} of {asked_across} have a "
        "training image with almost the same pixels. Test scores will be too high"
    )
    if facts["copies_across"] == 1:
        template = N_(
            "1 test image is bit-identical to a training image; {alike_across} of {asked_across} have a training "
            "image with almost the same pixels. Test scores will be too high"
        )
    reason = message(
        template,
        copies_across=f"{facts['copies_across']:,}",
        alike_across=f"{facts['alike_across']:,}",
        asked_across=f"{facts['asked_across']:,}",
    )
    return Suggestion("exclude", N_("remove copies from one split"), reason, N_("Samples, near-duplicates and leaks"))


def _uneven(facts: Facts) -> Suggestion | None:
    if facts.get("largest", 0) < UNEVEN * max(1, facts.get("smallest", 1)):
        return None
    reason = message(
        "{largest_class} has {largest} images, {smallest_class} {smallest}: kNN votes for the frequent ones",
        largest_class=facts["largest_class"],
        largest=f"{facts['largest']:,}",
        smallest_class=facts["smallest_class"],
        smallest=f"{facts['smallest']:,}",
    )
    return Suggestion("classes", N_("read the figures of each class"), reason, N_("Explore, Classes"))
