"""HTML by type, and the texts of rows in it, on pages and in reports. Streamlit-free.

Only `el` creates markup, and it escapes all text: a class called `<script>` is shown as text. `Said` is a text of a
row. It has its own direction, a long one folds, and words of a query are marked. `markup` makes its HTML,
shared/texts.js the same elements, and shared/texts.css their look."""

import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from contrastive_core.base.messages import JOINERS
from contrastive_lab.locale import N_, _

KEPT = f"\n\t\u00a0\u00ad\u202f\u3000{JOINERS}"  # not printable to Python: breaks, spaces, hyphens, joiners
VOID = ("meta", "br", "hr", "img")


class Html(str):
    """Markup created by `el`, which is not escaped again."""

    __slots__ = ()


def el(tag: str, *children: Html | str | float | None, **attributes: str | None) -> Html:
    """Return an element. Children other than `Html` are escaped, None is omitted. `data_part` becomes data-part."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in VOID:
        return Html(f"<{tag}{written}>")
    inner = "".join(c if isinstance(c, Html) else _escaped(str(c)) for c in children if c is not None)
    return Html(f"<{tag}{written}>{inner}</{tag}>")


def verbatim(tag: str, text: str, **attributes: str | None) -> Html:
    """Return our own script or style, with its text unescaped. Raises ValueError for text that would end it."""
    if "</" + tag in text.lower() or "<!--" in text:
        raise ValueError(f"a {tag} cannot hold what ends it")
    return Html(el(tag, **attributes).replace("></", f">{text}</", 1))


def data_script(data: bytes, **attributes: str | None) -> Html:
    """Return data in base64 as a script element that the browser does not run."""
    return verbatim("script", b64encode(data).decode(), type="application/octet-stream", **attributes)


def _escaped(text: str) -> str:
    """Escape a text; control characters and lone surrogates, which HTML cannot represent, become boxes."""
    shown = "".join(c if c.isprintable() or c in KEPT else "\N{WHITE SQUARE}" for c in text)
    return escape(shown, quote=True)


# --- texts of rows ---------------------------------------------------------------------------------


LONG, LINES = 480, 6  # columns and lines from which a text folds; shared/texts.css shows as many lines
MORE, LESS = N_("Show all"), N_("Show less")
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
# Thai, Lao, Myanmar, Hangul, Khmer, kana and Han: words have no spaces between them, or particles attached.
DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
COMMON = set(
    "the and for are was how what who why when where which does did can with from that this you your have not "
    "什么 怎么 如何 为什 哪些 多少 是否".split()
)
WORD, BIGRAMS = 1, 2  # kinds of runs of letters


@dataclass(frozen=True)
class Said:
    """A text in pieces, of which those at odd places are words of a query."""

    pieces: Sequence[str]
    is_long: bool

    def __str__(self) -> str:
        return "".join(self.pieces)


def said(text: str, query: str = "") -> Said:
    """Return a text with the words of a query marked: equal to one in any case, or longer by at most two letters. In
    scripts without spaces, pairs of adjacent characters take the place of words."""
    is_long = len(text) + len(DENSE.findall(text)) > LONG or text.count("\n") >= LINES
    words = _words(query)
    pieces, end = list[str](), 0
    for start, stop in _found(text, words) if words else ():
        if pieces and start <= end:
            pieces[-1] += text[end:stop]
        else:
            pieces += [text[end:start], text[start:stop]]
        end = stop
    return Said([*pieces, text[end:]], is_long)


def markup(text: str, query: str = "") -> Html:
    """Return the HTML of a text, as shared/texts.js builds it."""
    found = said(text, query)
    pieces = (el("mark", piece) if number % 2 else piece for number, piece in enumerate(found.pieces))
    fold = el("details", el("summary", el("span", _(MORE)), el("span", _(LESS)))) if found.is_long else None
    return el("div", el("p", *pieces, dir="auto"), fold, class_="said")


def answers(query: str, shown: Iterable[tuple[str, str]], about: str | None = None) -> Html:
    """Return the HTML of texts with a caption each, in which the words of a query are marked. Args: about: the caption
    of the query; None leaves the query out."""
    beside = (el("div", el("small", el("bdi", caption)), markup(text, query)) for caption, text in shown)
    own = None if about is None else el("div", el("small", el("bdi", about)), markup(query), class_="query")
    return el("div", own, *beside, class_="answers")


def isolated(text: str) -> str:
    """Return a text for a place inside a sentence: one that holds letters written from right to left keeps its own
    direction."""
    return f"\u2068{text}\u2069" if RIGHT_TO_LEFT.search(text) else text


def _kind(letter: str) -> int:
    """Return WORD or BIGRAMS for a letter, digit or combining mark, else 0."""
    if DENSE.match(letter):
        return BIGRAMS
    return WORD if letter.isalnum() or unicodedata.category(letter).startswith("M") else 0


def _runs(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start and kind of each run of letters, and the run in lower case."""
    start = 0
    for kind, letters in groupby(text, _kind):
        run = "".join(letters)
        if kind:
            yield start, kind, run
        start += len(run)


def _words(query: str) -> set[str]:
    """Return the words and pairs of characters of a query, without short and common ones."""
    words = set[str]()
    for _start, kind, run in _runs(query):
        if kind == BIGRAMS:
            words |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
        elif len(run) > 2 or run.isdigit():
            words.add(run.casefold())
    return words - COMMON


def _found(text: str, words: set[str]) -> Iterator[tuple[int, int]]:
    """Yield where words are in a text, in order; pairs of characters may overlap."""
    for start, kind, run in _runs(text):
        if kind == BIGRAMS:
            places = ((i, i + length) for i in range(len(run)) for length in (1, 2))
            yield from ((start + i, start + j) for i, j in places if j <= len(run) and run[i:j] in words)
        else:
            low = run.casefold()
            if low in words or (len(low) > 4 and not words.isdisjoint((low[:-1], low[:-2]))):
                yield start, start + len(run)
