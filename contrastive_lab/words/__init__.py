"""The words of the interface in another language.

English stands in the code, where sentences are made: on pages, in the library, in other processes.
They are translated where they are shown (boundary.py, components/shared/words.js), by one catalog
(zh.po). In English nothing is done. `python -m contrastive_lab.words` brings the catalog up to
date.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from contrastive_lab.words.translate import Catalog

__all__ = ["LANGUAGES", "PO", "catalog", "language", "of_browser_parts", "shown", "translate"]

LANGUAGES = {"en": "English", "zh": "中文"}  # as each calls itself
PO = Path(__file__).with_name("zh.po")
SESSION = "language"  # what was chosen in this session


def language() -> str:
    """The language of the session that asks: what it has chosen or its address said (switch.py),
    else that of the browser; English where no page is drawn."""
    if "streamlit" not in sys.modules:
        return "en"
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    if get_script_run_ctx(suppress_warning=True) is None:
        return "en"
    return st.session_state.get(SESSION) or of_browser()


def of_browser() -> str:
    """The language that the browser asks for, among ours."""
    import streamlit as st

    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


def shown(text: str) -> str:
    """A text as this session reads it."""
    return translate(text, language())


def translate(text: str, language: str) -> str:
    """A text in a language of LANGUAGES; what is in no catalog stays as it is."""
    return text if language == "en" or not text else catalog(language).translate(text)


@cache
def catalog(language: str) -> Catalog:
    """The catalog of a language."""
    return Catalog({entry.msgid: entry.msgstr for entry in _entries(language)})


@cache
def of_browser_parts(language: str) -> dict[str, str]:
    """The entries that are said in the browser parts."""
    return {
        entry.msgid: entry.msgstr
        for entry in _entries(language)
        if entry.msgstr and any(file.endswith((".js", ".txt")) for file, _ in entry.occurrences)
    }


def _entries(language: str):  # type: ignore[no-untyped-def]
    import polib

    return polib.pofile(str(PO.with_name(f"{language}.po")), encoding="utf-8")
