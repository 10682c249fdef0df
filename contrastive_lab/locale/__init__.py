"""Translation of the interface into the session's language, by gettext.

`_` translates a text where it is shown. A constant of a module is marked by `N_` and translated by `text` when it is
drawn; `text` also translates messages and errors of the library. Catalogs are `zh/LC_MESSAGES/contrastive_lab.po`, and
`browser.po` for the browser components (shared/locale.js)."""

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
document.querySelector("[data-testid=stSkipToContent]")?.replaceChildren("{skip}")
window.lostServer ||= setInterval(() => {{
  for (const text of document.querySelectorAll("[role=dialog] div"))
    if (!text.children.length && text.textContent.startsWith("Streamlit server is not")) text.textContent = "{lost}"
}}, 300)</script>"""
    for name, code, skip, lost in (
        (
            "en",
            "en",
            "Skip to main content",
            "The app's own server does not answer. Start the app again: this tab then reconnects by itself.",
        ),
        ("zh", "zh-CN", "跳到主要内容", "应用自身的服务器没有响应。请重新启动应用，此页面会自动重新连接。"),
    )
}


class Template(str):
    """A translated template whose `format` also translates messages and errors among its values."""

    def format(self, *args: object, **values: object) -> str:
        return super().format(
            *args, **{k: text(v) if isinstance(v, (Message, BaseException)) else v for k, v in values.items()}
        )


class Deferred(str):
    """A constant that is translated when Streamlit converts it to text, because a spinner's text is fixed where its
    function is defined."""

    def __str__(self) -> str:
        return text(str.__str__(self))


def _(message: str) -> Template:
    """Translate a message into the session's language; unknown ones stay unchanged."""
    if isinstance(message, Message):
        return Template(message.in_language(_))
    return Template(catalog(language()).gettext(message) if message else "")


def ngettext(singular: str, plural: str, count: int) -> Template:
    """Return the translated singular or plural form for a count."""
    return Template(catalog(language()).ngettext(singular, plural, count))


def text(value: object) -> str:
    """Translate a message, an error or a marked constant of the library; "" for None."""
    return "" if value is None else str(translate(value, _))


def language() -> str:
    """Return the session's language: the user's choice, else the browser's; English outside a page."""
    if "streamlit" not in sys.modules:
        return "en"
    import streamlit as st
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    if get_script_run_ctx(suppress_warning=True) is None:
        return "en"
    return st.session_state.get(SESSION) or browser_language()


def browser_language() -> str:
    """Return the browser's language if it is available, else English."""
    import streamlit as st

    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


@cache
def catalog(language: str, domain: str = "contrastive_lab") -> standard.NullTranslations:
    """Return the translations of a language."""
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
    """Return the translations for the browser components."""
    return {
        source: target
        for source, target in vars(catalog(language, "browser")).get("_catalog", {}).items()
        if source and isinstance(source, str)
    }
