"""The string and template literals of a JavaScript module.

No parser: Prettier writes these files, so that a regular expression literal always stands behind
one of a few characters, and comments are plain.
"""

from __future__ import annotations

import re

__all__ = ["literals"]

ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
REGEX = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/[a-z]*")

HOLE = re.compile(r"\{(\d+)\}")
Literal = tuple[str, int, int]  # the text, where it starts and where it ends
BEFORE_REGEX = re.compile(r"(^|[(,=:\[!&|?{};]|\breturn|=>)$")


def literals(source: str) -> list[tuple[str, int, str]]:
    """Each literal as a template, with its line and the few characters before it; those inside a
    template's holes come as well, and what is joined by + is one."""
    found: list[Literal] = []
    _code(source, 0, found, "")
    joined: list[Literal] = []
    by_end: dict[int, int] = {}  # places in `joined`
    for text, start, end in sorted(found, key=lambda one: one[1]):
        before = source[:start].rstrip()
        place = by_end.pop(len(before[:-1].rstrip()), -1) if before.endswith("+") else -1
        if place >= 0:
            first = joined[place]
            joined[place] = (first[0] + _renumbered(text, len(HOLE.findall(first[0]))), first[1], 0)
        else:
            place = len(joined)
            joined.append((text, start, 0))
        by_end[end] = place
    return [
        (text, source.count("\n", 0, start) + 1, _before(source, start))
        for text, start, _ in joined
    ]


def _renumbered(text: str, by: int) -> str:
    return HOLE.sub(lambda hole: f"{{{int(hole[1]) + by}}}", text)


def _code(source: str, at: int, found: list[Literal], end: str) -> int:
    """Read code until the brace that ends it (`end`), or the file's end; the place behind."""
    depth = 0
    while at < len(source):
        char = source[at]
        if source.startswith("//", at):
            at = source.find("\n", at) if "\n" in source[at:] else len(source)
        elif source.startswith("/*", at):
            at = source.index("*/", at) + 2
        elif char in "'\"":
            at = _string(source, at, found)
        elif char == "`":
            at = _template(source, at, found)
        elif (
            char == "/"
            and BEFORE_REGEX.search(_before(source, at))
            and (match := REGEX.match(source, at))
        ):
            at = match.end()
        elif char == end and not depth:
            return at + 1
        else:
            depth += (char == "{") - (char == "}")
            at += 1
    return at


def _string(source: str, at: int, found: list[Literal]) -> int:
    start, quote, text = at, source[at], ""
    at += 1
    while source[at] != quote:
        if source[at] == "\\":
            at += 1
            text += ESCAPES.get(source[at], source[at])
        else:
            text += source[at]
        at += 1
    found.append((text, start, at + 1))
    return at + 1


def _template(source: str, at: int, found: list[Literal]) -> int:
    start, text, holes = at, "", 0
    at += 1
    while source[at] != "`":
        if source[at] == "\\":
            text += ESCAPES.get(source[at + 1], source[at + 1])
            at += 2
        elif source.startswith("${", at):
            text += f"{{{holes}}}"
            holes += 1
            at = _code(source, at + 2, found, "}")
        else:
            text += source[at]
            at += 1
    found.append((text, start, at + 1))
    return at + 1


def _before(source: str, at: int) -> str:
    return source[max(0, at - 40) : at].rstrip()
