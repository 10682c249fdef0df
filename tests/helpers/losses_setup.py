"""Batches and settings that every test of the losses shares."""

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from cases import case
from torch import Tensor

from contrastive_core import losses, pairs
from contrastive_core.losses import Loss
from contrastive_core.pairs.types import Pairs

__all__ = ["BUILDERS", "SETTINGS", "build", "builders_met", "every_setting", "ids", "knobs_of", "make", "usable"]

LABELS = [0, 1, 0, 2, 0, 1, -1, 3]  # unequal classes, one row alone, one without a label


def build(kind: str, z: Tensor) -> Pairs:
    """Pairs of kind `kind` from 16 rows (16, d)."""
    d, labels = z.shape[1], torch.tensor(LABELS)
    if kind == "views":
        return pairs.from_views(z.view(8, 2, d))
    if kind == "four_views":
        return pairs.from_views(z.view(4, 4, d))
    if kind == "first_view":
        return pairs.from_views(z.view(8, 2, d), anchors="first_view")
    if kind == "labeled_views":
        return pairs.from_views(z.view(8, 2, d), labels)
    if kind == "labels":
        return pairs.from_labels(z, labels.repeat(2))
    if kind == "reference":
        return pairs.from_labels(z[:6], labels[:6], z[6:], labels.repeat(2)[6:])
    if kind == "queue":
        return pairs.from_queue(z[:5], z[5:10], z[10:])
    if kind == "bank":
        return pairs.from_bank(z[:5], torch.tensor([3, 0, 9, 5, 1]), z[5:], log_z=2.5)
    if kind == "noise":
        slots = torch.tensor([[1, 1, 4, 2], [5, 6, 7, 8], [2, 2, 2, 3], [0, 1, 2, 3], [9, 8, 8, 0]])
        return pairs.from_bank(z[:5], torch.tensor([3, 0, 9, 5, 1]), z[5:], slots, log_z=2.5)
    if kind == "pairs":
        return pairs.from_pairs(z[:8], z[8:], torch.arange(8) % 3 == 0)
    if kind == "towers":
        return pairs.from_towers(z[:8], z[8:])
    if kind == "captions":  # two of one image, one without, an image without any, unequal numbers
        groups = torch.tensor([2, 0, 0, 3, 2, 1, 9, -1, 4, 3, 1])
        return pairs.from_towers(z[:5], z[5:], torch.arange(5), groups)
    if kind == "b_to_a":
        return pairs.from_towers(z[:8], z[8:], torch.tensor(LABELS), torch.tensor(LABELS).flip(0), "b_to_a")
    positive = torch.rand(6, 10, generator=torch.Generator().manual_seed(7)) < 0.3
    negative = torch.rand(6, 10, generator=torch.Generator().manual_seed(8)) < 0.6
    return pairs.from_mask(z[:6], z[6:], positive, negative & ~positive)


BUILDERS = ("views", "four_views", "first_view", "labeled_views", "labels", "queue", "bank", "noise", "pairs", "mask")
BUILDERS += ("reference", "towers", "captions", "b_to_a")


def _settings() -> list[tuple[str, dict[str, Any]]]:
    """Every loss with every choice of its named knobs, by name, so that a new loss is included; with a margin for false
    negatives where it has one."""
    found = []
    for name in losses.names():
        knobs = losses.knobs(name)
        choices = {k: v.choices for k, v in knobs.items() if v.choices}
        choices |= {k: (True, False) for k, v in knobs.items() if isinstance(v.default, bool)}
        for values in itertools.product(*choices.values()):
            found.append((name, dict(zip(choices, values, strict=True))))
        if "negative_margin" in knobs:
            found += [(name, {"negative_margin": 0.1}), (name, {"positive_share": 0.95})]
    return found


Setting = tuple[str, dict[str, Any]]
SETTINGS = _settings()


def every_setting(settings: Sequence[Setting] = SETTINGS) -> Callable[[Callable[..., None]], Any]:
    """A test of one `name` with its `chosen` knobs becomes an item for each loss, which tries all of these settings."""

    def decorate(test: Callable[..., None]) -> Any:
        @functools.wraps(test)
        def of_loss(name: str, **fixtures: Any) -> None:
            for chosen in (knobs for other, knobs in settings if other == name):
                with case(name, chosen):
                    test(name=name, chosen=chosen, **fixtures)

        signature = inspect.signature(test)
        kept = [one for key, one in signature.parameters.items() if key != "chosen"]
        of_loss.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return pytest.mark.parametrize("name", list(dict.fromkeys(name for name, _ in settings)))(of_loss)

    return decorate


def builders_met(name: str, chosen: dict[str, Any], builders: Sequence[str] = BUILDERS) -> list[str]:
    """The builders that a setting is tried with: for the defaults all; else enough that each choice of a knob meets
    each builder once. The settings take turns, so that each is met."""
    default = {key: knob.default for key, knob in losses.knobs(name).items()}
    others = [knobs for other, knobs in SETTINGS if other == name and not knobs.items() <= default.items()]
    if chosen not in others:
        return list(builders)
    met = []
    for turn, kind in enumerate(builders):
        left = {choice for knobs in others for choice in knobs.items()} - default.items()
        for knobs in others[turn % len(others) :] + others[: turn % len(others)]:
            if knobs == chosen and left & knobs.items():
                met.append(kind)
            left -= knobs.items()
    return met


def ids(value: Any) -> str | None:
    """A readable name of a setting in a test's id."""
    return (
        "-".join(f"{k}{v}" if k in ("negative_margin", "positive_share") else str(v) for k, v in value.items())
        or "default"
        if isinstance(value, dict)
        else None
    )


def make(name: str, settings: dict[str, Any], **further: Any) -> Loss:
    """A loss with those of the further knobs that it has, within their range."""
    known = losses.knobs(name)
    further = {k: min(max(v, known[k].low), known[k].high) for k, v in further.items() if k in known}
    return losses.create(name, **settings, **further)


def knobs_of(loss: Loss) -> dict[str, Any]:
    """All settings of a loss, and whether it compares unit rows."""
    return dataclasses.asdict(loss) | {"normalize": loss.normalize}


def usable(loss: Loss, made: Pairs) -> bool:
    """Whether the loss takes these pairs; if not, that it says why in words."""
    reason = loss.check(made)
    assert reason is None or len(reason.split()) > 4
    return reason is None
