"""Some settings that the adviser tried, and what came of them. Torch-free."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from contrastive_core.advice.judge import Judged

__all__ = ["Tried"]


@dataclass(frozen=True, eq=False)
class Tried:
    """Some settings, and what came of them by epochs and seed."""

    label: str
    settings: dict[str, Any]
    value: float | None  # where it stands on the curve of the question, if it has a place there
    judged: dict[tuple[int, int], Judged] = field(default_factory=dict)  # by epochs, seed

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:6]

    def at(self, epochs: int) -> dict[int, Judged]:
        """What came of so many epochs, by seed, rising."""
        return {s: j for (e, s), j in sorted(self.judged.items()) if e == epochs}

    @property
    def is_default(self) -> bool:
        return not self.settings
