"""Points on a circle that follow a loss's own gradient, computed in the browser."""

from __future__ import annotations

from functools import cache
from typing import Any

from contrastive_lab.components.shared.transport import SHARED, mount, pack

__all__ = ["circle"]

SCORES = ("dot", "distance", "squared_distance")


@cache
def _mount() -> Any:
    return mount("circle", (*SHARED, "shared/kernels", "circle/circle"), "loss_view/loss_view")


def circle(
    kernel: dict[str, Any] | None,
    score: str,
    *,
    knob: dict[str, Any] | None = None,
    groups: int = 2,
    points: int = 24,
    scatter: int = 0,
    speed: int = 600,
    at: str = "",
    key: str = "circle",
) -> dict[str, Any]:
    """Draw the circle; returns what was last let go: `value` of the knob, `groups`, `points`,
    `scatter`, `speed` and `at`.

    Args:
        kernel: the loss's `kernel()`; None: a sentence says that the browser cannot compute it.
        score: what the loss compares: dot, distance or squared_distance.
        knob: `label`, `low`, `high`, `log`, `value` of what is dragged.
        groups, points: to begin with; both can be changed on the page.
        scatter: another number, other places to begin at.
        speed: of the steps, 0 to 1,000, on a logarithmic scale.
        at: where the points are once they have moved, three letters for each; else empty.
    """
    import streamlit as st

    if score not in SCORES:
        raise ValueError(f"a score is one of {', '.join(SCORES)}; got {score!r}")
    if kernel is None:
        st.info("The browser has no kernel for this loss; choose one of the softmax or hinge kind.")
        return {}
    fixed = {k: v for k, v in kernel.items() if k != kernel.get("knob")}
    meta = {
        "kernel": kernel, "score": score, "knob": knob, "groups": groups, "points": points,
        "scatter": scatter, "speed": speed, "at": at,
        "content": repr(sorted(fixed.items(), key=str)),
    }  # fmt: skip
    found = _mount()(
        key=key, data=pack(meta), default={"chosen": {}}, on_chosen_change=lambda: None
    )
    return dict(found.chosen or {})
