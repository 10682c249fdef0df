"""Where all that a page shows passes on its way to the browser: its texts become those of the
session's language.

A message is a copy of what the page made, so that keys, choices and caches stay those of English.
The texts of options are the widgets' own to translate (query_params.py), for the browser reports
them back; those of browser parts are translated where a part is packed.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from contrastive_lab import words

__all__ = ["install", "translate_message"]

TEXTS = {
    "alert": ("body", "title"), "button": ("label", "help"), "button_group": ("label", "help"),
    "checkbox": ("label", "help"), "download_button": ("label", "help"),
    "file_uploader": ("label", "help"), "heading": ("body", "help"),
    "link_button": ("label", "help"), "markdown": ("body", "help"),
    "menu_button": ("label", "help"), "metric": ("label", "body", "delta", "help"),
    "multiselect": ("label", "help", "placeholder"),
    "number_input": ("label", "help", "placeholder"), "page_link": ("label", "help"),
    "progress": ("text",), "radio": ("label", "help"),
    "selectbox": ("label", "help", "placeholder"), "slider": ("label", "help"),
    "spinner": ("text",), "text": ("body", "help"), "text_area": ("label", "help", "placeholder"),
    "text_input": ("label", "help", "placeholder"), "toast": ("body",),
}  # fmt: skip
BLOCK_TEXTS = {
    "dialog": ("title",), "expandable": ("label",), "popover": ("label", "help"), "tab": ("label",),
}  # fmt: skip
# Columns of names that a person, a file or a paper gave.
OF_USERS = {"Run", "Class", "Id", "ID", "Name", "File", "Path", "Image", "Sample", "Tags", "Note",
            "name", "title", "method", "data", "tags", "note"}  # fmt: skip
PLOTLY_TEXTS = {"text", "name", "hovertext", "hovertemplate", "ticktext", "labels", "title"}
HTML_TEXT = re.compile(
    r"<(?:style|script)>.*?</(?:style|script)>|"
    r"(>|\b(?:aria-label|alt|title)=\")([^<>\"]*[^\W\d_][^<>\"]*)(?=[<\"])",
    re.S,
)
Say = Callable[[str], str]


def install() -> None:
    """Put the boundary between pages and browser; a second time does nothing."""
    if getattr(ScriptRunContext.enqueue, "translates", False):
        return
    send = ScriptRunContext.enqueue

    def enqueue(self: ScriptRunContext, msg: Any) -> None:
        if (language := words.language()) != "en":
            translate_message(msg, lambda text: words.translate(text, language))
        send(self, msg)

    enqueue.translates = True  # type: ignore[attr-defined]
    ScriptRunContext.enqueue = enqueue  # type: ignore[method-assign]


def translate_message(msg: Any, say: Say) -> None:
    """Change the texts of a ForwardMsg."""
    kind = msg.WhichOneof("type")
    if kind == "delta":
        _delta(msg.delta, say)
    elif kind == "navigation":
        for page in msg.navigation.app_pages:
            page.page_name = say(page.page_name)
    elif kind == "page_config_changed":
        _fields(msg.page_config_changed, ("title",), say)


def _delta(delta: Any, say: Say) -> None:
    kind = delta.WhichOneof("type")
    if kind == "new_element":
        _element(delta.new_element, say)
    elif kind == "new_transient":
        for element in delta.new_transient.elements:
            _element(element, say)
    elif kind == "add_block":
        block = delta.add_block.WhichOneof("type")
        if block in BLOCK_TEXTS:
            _fields(getattr(delta.add_block, block), BLOCK_TEXTS[block], say)


def _element(element: Any, say: Say) -> None:
    kind = element.WhichOneof("type")
    content: Any = getattr(element, kind) if kind else None
    if kind == "markdown" and content.element_type == content.Type.LATEX:
        return
    if kind in TEXTS:
        _fields(content, TEXTS[kind], say)
    if kind == "radio":
        content.captions[:] = [say(text) for text in content.captions]
    elif kind == "imgs":
        for image in content.imgs:
            _fields(image, ("caption", "alt"), say)
    elif kind == "html":
        content.body = _html(content.body, say)
    elif kind == "plotly_chart":
        _fields(content, ("alt",), say)
        content.spec = json.dumps(_plotly(json.loads(content.spec), say))
    elif kind == "dataframe":
        _fields(content, ("alt",), say)
        _dataframe(content, say)
    elif kind == "table":
        content.arrow_data.data = _cells(content.arrow_data.data, say)[0]


def _fields(proto: Any, names: tuple[str, ...], say: Say) -> None:
    for name in names:
        text = getattr(proto, name)
        if text and not text.startswith("<"):
            setattr(proto, name, say(text))


def _html(body: str, say: Say) -> str:
    """A page's own HTML with its texts and what is read out translated, its styles left alone."""
    return HTML_TEXT.sub(
        lambda m: m[0] if not m[2] else m[1] + html.escape(say(html.unescape(m[2]))), body
    )


# --- tables -----------------------------------------------------------------------------------


def _dataframe(proto: Any, say: Say) -> None:
    """Heads of columns get a label; their names stay, since selections and sorting go by them."""
    if not proto.arrow_data.data:
        return
    data, names = _cells(proto.arrow_data.data, say)
    columns = json.loads(proto.columns) if proto.columns else {}
    for name in names:
        label = (columns.get(name) or {}).get("label") or name
        if (said := say(label)) != label:
            columns[name] = {**(columns.get(name) or {}), "label": said}
    for settings in columns.values():
        if settings and settings.get("help"):
            settings["help"] = say(settings["help"])
    proto.columns = json.dumps(columns)
    proto.placeholder = say(proto.placeholder)
    if proto.editing_mode == proto.EditingMode.READ_ONLY:
        proto.arrow_data.data = data
        styler = proto.arrow_data.styler
        if styler.display_values:
            styler.display_values = _cells(styler.display_values, say)[0]


def _cells(data: bytes, say: Say) -> tuple[bytes, list[str]]:
    """A table in Arrow's stream format with its texts translated, and its columns' names."""
    import pyarrow as pa  # which the first page does without

    table = pa.ipc.open_stream(data).read_all()
    for place, field in enumerate(table.schema):
        if field.name in OF_USERS or not (
            pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        ):
            continue
        values = [v if v is None else say(v) for v in table.column(place).to_pylist()]
        table = table.set_column(place, field, pa.array(values, field.type))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes(), table.schema.names


# --- charts -----------------------------------------------------------------------------------


def _plotly(node: Any, say: Say, key: str = "") -> Any:
    """A figure's texts, wherever they stand in it."""
    if isinstance(node, dict):
        return {k: v if k == "template" else _plotly(v, say, k) for k, v in node.items()}
    if isinstance(node, list):
        return [_plotly(one, say, key) for one in node]
    if isinstance(node, str) and key in PLOTLY_TEXTS:
        return "<br>".join(say(line) for line in node.split("<br>"))
    return node
