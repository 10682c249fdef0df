"""What is dragged in a browser part."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SliderKnob:
    """A loss's temperature or margin as a slider, linear or logarithmic."""

    label: str  # "τ, temperature": the symbol, then what it is
    low: float
    high: float
    value: float
    log: bool = False
