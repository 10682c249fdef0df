"""Finds the sentences of the interface in the source, as templates.

A constant is its own template; an f-string becomes one with numbered holes, so that
`f"{a:g} of {len(b)} negatives"` is "{0} of {1} negatives". Python is read by `ast`, the browser
parts by a scanner of string and template literals. A literal with a space is taken for words; one
without a space only where it is shown: what a widget or a wrapper of ours is called with, a value
in a dictionary, a word inside an f-string. What that finds too many of stands in not_words.txt, and
single words that it takes for names in also_words.txt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from contrastive_lab.words.javascript import literals

__all__ = ["Found", "also_words", "extract", "files", "not_words"]

ROOT = Path(__file__).resolve().parents[2]
NOT_WORDS = Path(__file__).with_name("not_words.txt")
ALSO_WORDS = Path(__file__).with_name("also_words.txt")
# What speaks on a command line, in files or to other programs.
SILENT = (
    "contrastive_core/cli", "contrastive_core/exporters", "contrastive_core/distributed",
    "contrastive_core/ops", "contrastive_lab/words", "contrastive_lab/widgets",
    "contrastive_lab/report", "contrastive_lab/components/report", "contrastive_lab/desktop",
    "contrastive_lab/components/shared/bundle.py",
    "contrastive_core/runs/export_weights.py", "contrastive_core/__main__.py",
    "contrastive_lab/__main__.py",
)  # fmt: skip
LOUD = ("contrastive_lab/report/button.py",)  # stands on pages
# Calls whose literals nobody reads as words.
MUTE_CALLS = {
    "add_argument", "compile", "connect", "debug", "endswith", "execute", "exists", "fillna",
    "findall", "fullmatch", "get", "getattr", "glob", "hasattr", "html", "latex", "match",
    "mkdtemp", "NewType", "open", "Path", "pop", "removeprefix", "removesuffix", "replace",
    "rglob", "search", "setattr", "setdefault", "split", "startswith", "strftime", "strip", "sub",
    "TypeVar", "write_text", "warn", "with_name", "encode", "sha256", "Namespace", "joinpath",
}  # fmt: skip
MUTE_ARGUMENTS = {
    "key", "name", "type", "mode", "style", "encoding", "format", "kind", "role", "href", "css",
    "language", "theme", "width", "height", "icon", "mime", "file_name", "dtype", "method", "units",
    "width_config", "args", "env", "cwd", "prefix", "suffix", "dash", "color", "colorscale",
    "hovermode", "orientation", "xanchor", "yanchor", "axis", "order", "by", "on_click", "part",
    "selection_mode", "layout", "device", "optimizer", "schedule", "columns", "metric",
}  # fmt: skip
SHOWN_CALLS = {
    "button", "caption", "checkbox", "code", "dialog", "download_button", "error", "expander",
    "file_uploader", "form_submit_button", "header", "info", "link_button", "markdown", "metric",
    "multiselect", "number_input", "page_link", "popover", "radio", "segmented_control",
    "selectbox", "select_slider", "slider", "spinner", "status", "subheader", "success", "tabs",
    "text", "text_area", "text_input", "title", "toast", "toggle", "warning", "write", "Column",
    "TextColumn", "NumberColumn", "ProgressColumn", "ImageColumn", "CheckboxColumn", "LinkColumn",
    "one_of", "many_of", "number", "optional_number", "form_number", "switch", "pills",
    "add_annotation", "column",
}  # fmt: skip
SHOWN_ARGUMENTS = {
    "label", "help", "title", "placeholder", "text", "caption", "hint", "note", "x_title",
    "y_title", "xaxis_title", "yaxis_title", "headline", "reason", "verdict", "summary", "what",
    "unit", "description", "words", "message", "symbol", "singular", "plural", "heading", "legend",
    "short", "long", "axis_title", "name_shown", "then", "say", "told", "question",
}  # fmt: skip
# What stands before a literal of JavaScript that is no words.
JS_MUTE = ("class:", "style:", "className =", "font =", "matchMedia(", "selector:", "lineDash(")
WORD = re.compile(r"[^\W\d_]{2,}")
HOLE = re.compile(r"\{\d+\}")
CODE = re.compile(
    r"^\s*[<#.@/]|^[\w./\\-]+\.(py|js|css|json|csv|png|jpg|npz|pt|txt|toml|svg)$|</\w|;\s*$.*:|"
    r"^\(prefers|(?:^|\s)--\w|://|\\[a-z]+\{|\{\s*$|^[a-z-]+: [^ ]+;|^\(\?|^[\w-]+\[|^[.#]?st[A-Z]|"
    r"\$\{|^[a-z_]+=",
)
NAME = re.compile(r"^[a-z0-9_./:=+*%#$@~^-]+$|^[A-Z0-9_]+$|^[a-z]+[A-Z]\w*$|^:material")
PIECE = re.compile(r"^\s*[a-z]{3,}\s*$")
ALONE = re.compile(r"^[(*]*[A-Za-z][A-Za-z-]+(/s)?[.…:!?)*]*$")
CAPITALIZED = re.compile(r"^[A-Z][a-z]+(?:[ -]\w+)*[.…:?!]?$|^\W*[A-Z][a-z]+\W*$")


class Found(NamedTuple):
    """A template, the file and line it is from, and whether it is a piece of other sentences."""

    text: str
    file: str
    line: int


def not_words() -> set[str]:
    """Templates that are no words of the interface (a line each; \\n stands for a line break)."""
    return {line.replace("\\n", "\n") for line in _lines(NOT_WORDS)}


def _lines(path: Path) -> list[str]:
    """What a file lists, a line each."""
    lines = path.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


def also_words() -> list[str]:
    """Single words that are shown and look like names."""
    return _lines(ALSO_WORDS)


def extract(root: Path = ROOT, *, with_all: bool = False) -> list[Found]:
    """Every template of the interface, in the order of files and lines, less `not_words` (unless
    `with_all`)."""
    left_out = set() if with_all else not_words()
    found = [Found(word, ALSO_WORDS.name, line) for line, word in enumerate(also_words(), 1)]
    for path in files(root):
        name = path.relative_to(root).as_posix()
        source = path.read_text("utf-8")
        texts = _python(source) if path.suffix == ".py" else _javascript(source)
        found += [Found(text, name, line) for text, line in texts if text not in left_out]
    return found


def files(root: Path = ROOT) -> Iterator[Path]:
    """The files that have sentences of the interface."""
    yield root / "app.py"
    for folder in ("pages", "contrastive_lab", "contrastive_core"):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".py", ".js") and (name in LOUD or not name.startswith(SILENT)):
                yield path


# --- Python -----------------------------------------------------------------------------------


def _python(source: str) -> list[tuple[str, int]]:
    visitor = _Reader()
    visitor.visit(ast.parse(source))
    return visitor.found


class _Reader(ast.NodeVisitor):
    """Walks a module; `shown` says whether a literal stands where a page shows it."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int]] = []
        self._shown = False

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._take(node.value, node.lineno)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        holes: list[ast.expr] = []
        text = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                text += f"{{{len(holes)}}}"
                holes.append(part.value)
        self._take(text, node.lineno)
        for hole in holes:
            self._inside(True, hole)
            for piece in (p for p in ast.walk(hole) if isinstance(p, ast.IfExp)):
                for word in (piece.body, piece.orelse):
                    if isinstance(word, ast.Constant) and PIECE.match(str(word.value)):
                        self.found.append((str(word.value).strip(), word.lineno))

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """What is joined by + is one literal."""
        parts = _joined(node)
        if parts is None:
            self.generic_visit(node)
        else:
            self.visit_JoinedStr(ast.copy_location(ast.JoinedStr(parts), node))

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        self.visit(called)
        if name in MUTE_CALLS:
            for argument in [*node.args, *(k.value for k in node.keywords)]:
                if not isinstance(argument, (ast.Constant, ast.JoinedStr)):
                    self.visit(argument)
            return
        for argument in node.args:
            self._inside(name in SHOWN_CALLS or self._shown, argument)
        for keyword in node.keywords:
            if keyword.arg in MUTE_ARGUMENTS and isinstance(keyword.value, ast.Constant):
                continue
            self._inside(keyword.arg in SHOWN_ARGUMENTS, keyword.value)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:  # a capitalized key heads a column
                self._inside(isinstance(key, ast.Constant) and _is_label(key.value), key)
            self._inside(True, value)

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> None:
        for item in node.elts:
            label = isinstance(item, ast.Constant) and _is_label(item.value)
            self._inside(self._shown or label, item)

    visit_Tuple = visit_List = visit_Set = _sequence

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._inside(not isinstance(node.value, ast.Call), node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(getattr(target, "id", "") == "__all__" for target in node.targets):
            self._inside(False, node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.visit(node.value)
        if not isinstance(node.slice, (ast.Constant, ast.JoinedStr)):
            self._inside(False, node.slice)

    def visit_Compare(self, node: ast.Compare) -> None:
        for side in (node.left, *node.comparators):
            if not isinstance(side, (ast.Constant, ast.Tuple, ast.List, ast.Set)):
                self._inside(False, side)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._inside(False, node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_Assert(self, node: ast.Assert) -> None:
        del node

    def visit_Expr(self, node: ast.Expr) -> None:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.visit(node.value)  # else a docstring

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in [*node.defaults, *node.kw_defaults]:
            if default is not None:
                self.visit(default)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for child in [*node.decorator_list, node.args, *node.body]:
            self._inside(False, child)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._inside(False, node.value)

    def _inside(self, shown: bool, node: ast.AST) -> None:
        before, self._shown = self._shown, shown
        self.visit(node)
        self._shown = before

    def _take(self, text: str, line: int) -> None:
        if is_words(text, self._shown):
            self.found.append((text.strip(), line))


def _joined(node: ast.expr) -> list[ast.expr] | None:
    """The parts of literals that + joins, or None where something else is among them."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node]
    if isinstance(node, ast.JoinedStr):
        return list(node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _joined(node.left), _joined(node.right)
        return left + right if left is not None and right is not None else None
    return None


def _is_label(value: object) -> bool:
    return isinstance(value, str) and bool(CAPITALIZED.match(value))


def is_words(text: str, shown: bool) -> bool:
    """Whether a literal is words of the interface; `shown`: it stands where a page shows it."""
    bare = HOLE.sub(" ", text).strip()
    if not WORD.search(bare) or CODE.search(text.strip()):
        return False
    if " " in text.strip() and len(WORD.findall(bare)) >= 1:
        return " " in bare or shown or bool(HOLE.search(text))
    return shown and bool(ALONE.match(text.strip())) and not NAME.match(text.strip())


# --- JavaScript -------------------------------------------------------------------------------


def _javascript(source: str) -> list[tuple[str, int]]:
    return [
        (text.strip(), line)
        for text, line, before in literals(source)
        if is_words(text, not before.endswith(("===", "!==", "from")))
        and not before.endswith(JS_MUTE)
    ]
