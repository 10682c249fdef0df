"""What a page shows, kept in its address, so that any view can be bookmarked and opened again."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

__all__ = ["Address"]


class Address:
    """The query of a page's address, checked value by value; nothing in it is trusted.

    An address that names at most a run (one comes back through the menu) stands for what the page
    showed last.
    """

    def __init__(self, page: str) -> None:
        import streamlit as st

        self._query, self._memory = st.query_params, st.session_state
        self._name = f"address {page}"
        given = dict(st.query_params.to_dict())
        before = st.session_state.get(self._name, {})
        self._known: dict[str, str] = given if set(given) - {"run"} else {**before, **given}

    def text(self, name: str, default: str, known: Collection[str] | None = None) -> str:
        """A value, or the default if there is none or it is not among the known."""
        found = self._known.get(name, default)
        return found if known is None or found in known else default

    def number(self, name: str, default: Any = None, low: float = 0, high: float = 1e9) -> Any:
        """A number, brought between low and high, or the default."""
        try:
            value = float(self._known[name])
        except (KeyError, ValueError):
            return default
        return default if value != value else min(high, max(low, value))

    def keep(self, **values: Any) -> None:
        """Write the address: these values and the run; None and "" are left out."""
        shown = {k: _text(v) for k, v in values.items() if v is not None and v != ""}
        if "run" in self._query:
            shown = {"run": self._query["run"], **shown}
        if self._query.to_dict() != shown:
            self._query.from_dict(shown)
        self._memory[self._name] = {k: v for k, v in shown.items() if k != "run"}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
