"""What of the address no widget of the page holds, and what is chosen for a widget elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from contrastive_lab.query_params.session import entry, page_values, show

__all__ = ["Address", "ask", "begin", "choose", "chosen", "keep", "kept_value", "requested", "take"]


def choose(key: str, value: Any) -> None:
    """Choose for the widget of this key, from the next time it is drawn. `key` is the widget's own,
    or `PAGE-NAME` where it was given none."""
    page_values()[key] = value


def chosen(key: str) -> Any:
    """What was chosen with the widget of this key, for its `on_change`."""
    return page_values()[key]


def requested(name: str) -> str | None:
    """What the address asked for when one came to the page, if no widget has taken it yet."""
    parameters: dict[str, str] = entry()["asked"]
    return parameters.get(name)


def take(name: str) -> str | None:
    """The same, once."""
    parameters: dict[str, str] = entry()["asked"]
    return parameters.pop(name, None)


def ask(parameters: dict[str, str]) -> None:
    """Ask for what the address leaves open, before the widgets are drawn."""
    session = entry()
    session["asked"] = {**parameters, **session["asked"]}


def begin(parameters: dict[str, str]) -> None:
    """The page begins anew, as if one had come to it by a link with these parameters."""
    session = entry()
    session["values"][session["page"]] = {}
    session["asked"] = dict(parameters)


def keep(**values: Any) -> None:
    """Put what no widget holds (a component reports it) into the address; None and "" are left
    out."""
    for name, value in values.items():
        show(name, value)
        page_values()[f"kept {name}"] = entry()["shown"].get(name)
        entry()["asked"].pop(name, None)


def kept_value(name: str) -> str | None:
    """What was kept under a name on this page, or what its address asks for."""
    return requested(name) or page_values().get(f"kept {name}")


class Address:
    """Values of a page that no widget holds, checked one by one."""

    def __init__(self, page: str) -> None:
        self._page = page

    def text(self, name: str, default: str, allowed: Collection[str] | None = None) -> str:
        """A value, or the default if there is none or it is not among the known."""
        value = kept_value(name)
        return default if value is None or (allowed is not None and value not in allowed) else value

    def number(self, name: str, default: Any = None, low: float = 0, high: float = 1e9) -> Any:
        """A number, brought between low and high, or the default."""
        try:
            value = float(kept_value(name) or "")
        except ValueError:
            return default
        return default if value != value else min(high, max(low, value))

    def keep(self, **values: Any) -> None:
        keep(**values)
