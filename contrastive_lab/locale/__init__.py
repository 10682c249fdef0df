"""The interface in the session's language, by gettext.

`_` translates where a text is shown, so a constant of a module is marked by `N_` and translated by
`text` where it is drawn; `text` also takes the library's messages and errors. Catalogs are
`zh/LC_MESSAGES/contrastive_lab.po`, and `browser.po` for the browser parts (shared/locale.js).
"""

import gettext as standard
import io
import sys
from functools import cache
from pathlib import Path

from contrastive_core.base.messages import N_ as N_
from contrastive_core.base.messages import Message as Message
from contrastive_core.base.messages import message as message
from contrastive_core.base.messages import sentence as sentence
from contrastive_core.base.messages import translate

LANGUAGES = {"en": "English", "zh": "中文"}  # as each calls itself
FOLDER = Path(__file__).parent
SESSION = "language"  # the session's own choice (state.py)
SCRIPTS = {  # the language by which a screen reader reads the page; Streamlit's dialog asks about the internet
    name: f"""<script>document.documentElement.lang = "{code}"
window.lostServer ||= setInterval(() => {{
  for (const text of document.querySelectorAll("[role=dialog] div"))
    if (!text.children.length && text.textContent.startsWith("Streamlit server is not")) text.textContent = "{lost}"
}}, 300)</script>"""
    for name, code, lost in (
        ("en", "en", "The app's own server does not answer. Start the app again: this tab then reconnects by itself."),
        ("zh", "zh-CN", "应用自身的服务器没有响应。请重新启动应用，此页面会自动重新连接。"),
    )
}


class Template(str):
    """A translated template: `format` translates the messages and errors among its values."""

    def format(self, *args: object, **values: object) -> str:
        return super().format(
            *args, **{k: text(v) if isinstance(v, (Message, BaseException)) else v for k, v in values.items()}
        )


class Deferred(str):
    """A constant that is translated where Streamlit draws it, which it does by `str`: a spinner's text
    is fixed where its function is defined."""

    def __str__(self) -> str:
        return text(str.__str__(self))


def _(message: str) -> Template:
    """A message in the session's language; an unknown one stays."""
    if isinstance(message, Message):
        return Template(message.in_language(_))
    return Template(catalog(language()).gettext(message) if message else "")


def ngettext(singular: str, plural: str, count: int) -> Template:
    """The form of a message for a count."""
    return Template(catalog(language()).ngettext(singular, plural, count))


def text(value: object) -> str:
    """A message, an error or a marked constant of the library in the session's language; "" for None."""
    return "" if value is None else str(translate(value, _))


def language() -> str:
    """The session's language: its own choice, else the browser's; English where no page is drawn."""
    if "streamlit" not in sys.modules:
        return "en"
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    if get_script_run_ctx(suppress_warning=True) is None:
        return "en"
    return st.session_state.get(SESSION) or browser_language()


def browser_language() -> str:
    """The browser's language, among ours."""
    import streamlit as st

    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


@cache
def catalog(language: str, domain: str = "contrastive_lab") -> standard.NullTranslations:
    """The messages of a language."""
    if language == "en":
        return standard.NullTranslations()
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    compiled = io.BytesIO()
    with (FOLDER / language / "LC_MESSAGES" / f"{domain}.po").open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    return standard.GNUTranslations(compiled)


@cache
def browser_messages(language: str) -> dict[str, str]:
    """The messages of the browser parts."""
    return {
        source: target
        for source, target in vars(catalog(language, "browser")).get("_catalog", {}).items()
        if source and isinstance(source, str)
    }
