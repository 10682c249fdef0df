"""A registered loss described for the live view; for notebooks, reports and the engine. Imports torch."""

from dataclasses import asdict
from typing import Any

from contrastive_core import losses


def about_loss(loss: str, knobs: dict[str, Any] | None = None) -> dict[str, Any]:
    """A loss as the catalog has it, and `values` of its knobs. Raises UnknownName, ValueError for a setting."""
    criterion, registered = losses.create(loss, **(knobs or {})), losses.knobs(loss)
    about = {"title": criterion.card.title, "score": criterion.score, "kernel": criterion.kernel()}
    knobs_of = {name: asdict(knob) for name, knob in registered.items()}
    return {**about, "knobs": knobs_of, "values": {name: getattr(criterion, name) for name in registered}}
