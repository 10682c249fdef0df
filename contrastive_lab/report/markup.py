"""HTML by type: `el` escapes every text, and only it makes markup: a class called `<script>` is shown as that."""

from base64 import b64encode
from html import escape

VOID = ("meta", "br", "hr")


class Html(str):
    """Markup; of it `el` makes more."""

    __slots__ = ()


def el(tag: str, *children: Html | str | float | None, **attributes: str | None) -> Html:
    """An element; children that are no `Html` are escaped, None is left out. `data_part` is data-part."""
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
    """A script or style of ours, whose text HTML reads as it stands. Raises ValueError."""
    if "</" + tag in text.lower() or "<!--" in text:
        raise ValueError(f"a {tag} cannot hold what ends it")
    return Html(el(tag, **attributes).replace("></", f">{text}</", 1))


def data_script(data: bytes, **attributes: str | None) -> Html:
    """Data in base64, which the browser runs nothing of."""
    return verbatim("script", b64encode(data).decode(), type="application/octet-stream", **attributes)


def _text(text: str) -> str:
    """Escaped; a control character or half of a pair, which HTML has no way to write, as a box."""
    shown = "".join(c if c.isprintable() or c in "\n\t" else "\N{WHITE SQUARE}" for c in text)
    return escape(shown, quote=True)
