"""A table of a page: heads in the session's language over names that stay."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_lab.locale import Message, text


def draw_table(rows: Any, place: Any = st, column_config: dict[str, Any] | None = None, **options: Any) -> Any:
    """`st.dataframe` of rows, a frame or a styled frame. Its columns keep their English names, by which
    selections and sorting go; messages in cells are translated.

    Args: place: the container. column_config, options: as `st.dataframe` takes them.
    """
    if isinstance(rows, list):
        rows = [{k: text(v) if isinstance(v, Message) else v for k, v in row.items()} for row in rows]
    frame = getattr(rows, "data", rows)
    names = list(dict.fromkeys(k for row in rows for k in row)) if isinstance(rows, list) else list(frame.columns)
    settings = dict(column_config or {})
    for name in names:
        given = settings.get(name)
        if isinstance(given, dict):
            more = {k: text(given[k]) for k in ("label", "help") if given.get(k)}
            settings[name] = {**given, "label": more.get("label", text(name)), **more}
        elif given is None and text(str(name)) != name and name not in settings:
            settings[name] = text(str(name))
    return place.dataframe(rows, column_config=settings or None, **options)
