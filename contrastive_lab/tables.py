"""A table of a page: heads in the session's language over names that stay."""

from collections.abc import Iterable
from typing import Any

import streamlit as st

from contrastive_core.records.score import Score
from contrastive_lab import format
from contrastive_lab.locale import Message, text


def draw_table(rows: Any, column_config: dict[str, Any] | None = None, **options: Any) -> Any:
    """`st.dataframe` of rows, a frame or a styled frame. Its columns keep their English names, by which selections and
    sorting go; messages in cells are translated. Args: column_config, options: as `st.dataframe` takes them."""
    if isinstance(rows, list):
        rows = [{k: text(v) if isinstance(v, Message) else v for k, v in row.items()} for row in rows]
        names = list(dict.fromkeys(k for row in rows for k in row))
    else:
        names = list(getattr(rows, "data", rows).columns)
    settings = dict(column_config or {})
    for name in names:
        if isinstance(given := settings.get(name), dict):
            more = {k: text(given[k]) for k in ("label", "help") if given.get(k)}
            settings[name] = {**given, "label": text(name), **more}
        elif name not in settings and text(str(name)) != name:
            settings[name] = text(str(name))
    return st.dataframe(rows, column_config=settings or None, **options)


def draw_definitions(scores: Iterable[Score]) -> None:
    """Show the meaning of each score, or why it has no value."""
    sides = st.columns(2, gap="medium")
    for number, score in enumerate(scores):
        missing = f" *{format.plain(score.missing)}.*" if score.missing else ""
        sides[number % 2].caption(f"**{format.plain(score.title)}**: {format.plain(score.reading)}{missing}")
