"""Choices that stand in the page's address: one way for every widget of the app.

    view = query_params.one_of(st.segmented_control, "View", VIEWS, name="view")

The widget always gets a key: without one, a `default` that follows its last value makes it another
widget for Streamlit, which drops the next choice. What a person
chose is kept for the session, so that a page shows again what it showed last; an address that names
more than the run stands for itself. Nothing in an address is trusted: a value that is not among the
options gives the default.

`arrive` is called before a page is drawn and `write` after it (app.py). In one run the address is
written once, with what was drawn: parameters of widgets that are gone leave it.

A button that acts on a number that is typed in is drawn by `button`; it stands in no address.
"""

from __future__ import annotations

from contrastive_lab.query_params.address import Address, ask, begin, choose, chosen, keep, kept_value, requested, take
from contrastive_lab.query_params.choices import current, many_of, one_of, switch, text
from contrastive_lab.query_params.numbers import button, form_number, number, optional_number, wrong_number
from contrastive_lab.query_params.session import arrive, write

__all__ = [
    "Address",
    "arrive",
    "ask",
    "begin",
    "button",
    "choose",
    "chosen",
    "current",
    "form_number",
    "keep",
    "kept_value",
    "many_of",
    "number",
    "one_of",
    "optional_number",
    "requested",
    "switch",
    "take",
    "text",
    "write",
    "wrong_number",
]
