"""What the browser parts of the Loss Lab reported last, and what the address asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contrastive_lab import query_params
from contrastive_lab.components.shared.mount import reported_state


@dataclass(frozen=True)
class PanelState:
    """What the live view shows; "" and None: as at first."""

    view: str = ""
    panel: str = ""
    order: str = ""
    second: str = ""  # the second setting, as `loss:NAME`, `rows:SOURCE` or a form
    second_value: float | None = None
    masks: bool | None = None
    share: bool | None = None  # bars among the negatives
    anchor: int | None = None  # None: one that is easily confused


def reported(key: str) -> dict[str, Any]:
    """What the part of this key reported last."""
    return dict(reported_state(key, "chosen") or {})


def panel_state(key: str) -> PanelState:
    """What the live view shows: as it said itself, or as the address asks."""
    report = reported(key)
    texts: dict[str, Any] = {
        n: report.get(n, query_params.kept_value(n) or "") for n in ("view", "panel", "order", "second")
    }
    flags: dict[str, Any] = {n: report.get(n, query_params.kept_value(n) == "yes") or None for n in ("masks", "share")}
    second_value, anchor = (report.get(n, query_params.kept_number(n)) for n in ("second_value", "anchor"))
    return PanelState(**texts, second_value=second_value, **flags, anchor=None if anchor is None else int(anchor))
