"""A table whose cells wrap; on a phone a card for each row, whose lines say their columns."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from contrastive_lab import locale

STYLE = """<style>
[class*="st-key-table-"] :is(th, td):first-child { word-break: keep-all; }
[class*="st-key-table-"] :is(th, td):nth-child(3):last-child { min-width: 7.5rem; }
@media (max-width: 600px) {
  [class*="st-key-table-"] :is(table, tbody, tr, td) { display: block; border: 0; }
  [class*="st-key-table-"] thead { position: absolute; clip-path: inset(50%); }
  [class*="st-key-table-"] tr {
    border-top: 1px solid color-mix(in srgb, currentcolor 20%, transparent);
    padding: 0.4rem 0;
  }
  [class*="st-key-table-"] td { display: flow-root; padding: 0.1rem 0 0.1rem 7.5rem; }
  [class*="st-key-table-"] td:first-child { padding-left: 0; font-weight: 600; }
  [class*="st-key-table-"] td:not(:first-child)::before {
    content: var(--column);
    float: left;
    width: 7rem;
    margin-left: -7.5rem;
    font-size: 0.875rem;
    color: color-mix(in srgb, currentcolor 78%, transparent);
  }
}
</style>"""


def table(rows: list[dict[str, Any]], name: str) -> None:
    """Draw rows of texts in Markdown; `name` is the table's own among those of the page."""
    key, columns = f"table-{name}", [locale.text(column) for column in rows[0]]
    lines = [columns, ["---"] * len(columns)]
    lines += [["–" if v is None else locale.text(v).replace("|", r"\|") for v in r.values()] for r in rows]
    says = "\n".join(
        f".st-key-{key} td:nth-child({k}) {{ --column: {json.dumps(column, ensure_ascii=False)}; }}"
        for k, column in enumerate(columns, 1)
    )
    with st.container(key=key):
        st.html(f'<i class="frame"></i>{STYLE}<style>{says}</style>')  # see app.py
        st.markdown("\n".join(f"| {' | '.join(line)} |" for line in lines))
