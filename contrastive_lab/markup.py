"""HTML by type: only `el` creates markup, and it escapes all text. A class called `<script>` is shown as text."""

from base64 import b64encode
from html import escape

from contrastive_core.base.safe_files import JOINERS

KEPT = f"\n\t\u00a0\u00ad\u202f\u3000{JOINERS}"  # not printable to Python: breaks, spaces, hyphens, joiners
VOID = ("meta", "br", "hr")


class Html(str):
    """Markup created by `el`, which is not escaped again."""

    __slots__ = ()


def el(tag: str, *children: Html | str | float | None, **attributes: str | None) -> Html:
    """Return an element. Children other than `Html` are escaped, None is omitted. `data_part` becomes data-part."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_text(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in VOID:
        return Html(f"<{tag}{written}>")
    inner = "".join(c if isinstance(c, Html) else _text(str(c)) for c in children if c is not None)
    return Html(f"<{tag}{written}>{inner}</{tag}>")


def verbatim(tag: str, text: str, **attributes: str | None) -> Html:
    """Return our own script or style, with its text unescaped. Raises ValueError for text that would end it."""
    if "</" + tag in text.lower() or "<!--" in text:
        raise ValueError(f"a {tag} cannot hold what ends it")
    return Html(el(tag, **attributes).replace("></", f">{text}</", 1))


def data_script(data: bytes, **attributes: str | None) -> Html:
    """Return data in base64 as a script element that the browser does not run."""
    return verbatim("script", b64encode(data).decode(), type="application/octet-stream", **attributes)


def _text(text: str) -> str:
    """Escape a text; control characters and lone surrogates, which HTML cannot represent, become boxes."""
    shown = "".join(c if c.isprintable() or c in KEPT else "\N{WHITE SQUARE}" for c in text)
    return escape(shown, quote=True)
