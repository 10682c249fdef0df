"""What a recording is asked to do, checked once, before the training begins."""

from __future__ import annotations

from dataclasses import dataclass

from contrastive_core.errors import BadSetting
from contrastive_core.losses import Loss
from contrastive_core.messages import message
from contrastive_core.storage.json_files import JsonObject

__all__ = ["POSITIVES", "Settings"]

POSITIVES = ("auto", "views", "labels", "keys")
NAMES = 10_000  # classes


@dataclass(frozen=True)
class Settings:
    """The loss that is taken (None: the caller's `losses=` alone), how often, how many rows are
    kept of a step, who is a positive, whose images ids name, and what happens on an error."""

    loss_name: str | None
    loss: Loss | None
    every: int
    rows: int
    positives: str
    dataset: str
    split: str
    classes: tuple[str, ...]
    gather: bool
    strict: bool

    def __post_init__(self) -> None:
        for name in ("every", "rows"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise BadSetting(
                    message("{name} must be a whole number from 1; got {value}", name=name, value=f"{value!r}")
                )
        if self.positives not in POSITIVES:
            raise BadSetting(
                message(
                    "positives must be one of {positives}; got {self_positives}",
                    positives=", ".join(POSITIVES),
                    self_positives=f"{self.positives!r}",
                )
            )
        if self.split not in ("train", "test"):
            raise BadSetting(message("split must be train or test; got {split}", split=f"{self.split!r}"))

    def config(self, knobs: JsonObject) -> JsonObject:
        """As a run.json has it."""
        return {
            "loss": self.loss_name,
            "loss_knobs": knobs if self.loss is not None else {},
            "dataset": self.dataset or None,
        }

    def about(self) -> JsonObject:
        """The entry of a run.json that says it is a recording."""
        kept = ("every", "rows", "positives", "split")
        return {name: getattr(self, name) for name in kept}
