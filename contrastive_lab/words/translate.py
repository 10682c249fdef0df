"""Says a text in another language: by the catalog's sentences, its templates, and their parts.

A text is looked up as a whole; then as a template, whose holes are translated in turn; then taken
apart at paragraphs, sentences and lesser separators. What is in no catalog stays as it is: names of
runs, classes and files reach the page unchanged. components/shared/words.js is the same for the
browser parts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import lru_cache, reduce

__all__ = ["Catalog", "holes_of"]

HOLE = re.compile(r"\{(\w+)\}")
LETTERS = re.compile(r"[^\W\d_]{2,}")
LETTER = re.compile(r"[A-Za-z]")
WIDE = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]")
SENTENCE = re.compile(r"(?<=[.!?…])([\"”’)*_]*\s+)(?=\W*[^\W\d_a-z]|\W*\d)")
LINE = re.compile(r"^(\s*(?:(?:[-*+>]|\d+\.|#{1,6})\s+)?)(.*?)(\s*)$", re.S)
WRAPPED = re.compile(
    r"(\*\*|\*|__|“|\(|\[|:\w+\[|:material/\w+:\s*|→ |← )(.+?)(\*\*|\*|__|”|\)|\](?:\([^)]*\))?|)",
    re.S,
)
PAIRS = {"**": "**", "*": "*", "__": "__", "“": "”", "(": ")", "→ ": "", "← ": ""}
SEPARATORS = ("; ", " · ", " – ", " — ", ": ", ", ", " | ", " (")
EDGE = "\ue000"  # of what was translated in a hole; stands in no text
_WIDE = WIDE.pattern
SEAM = re.compile(rf"(?<={_WIDE}) (?={EDGE}{_WIDE})|(?<={_WIDE}{EDGE}) (?={_WIDE})")
WIDE_MARKS = {".": "。", ":": "：", ";": "；", ",": "，", "!": "！", "?": "？", "…": "…"}
PART = re.compile(r"[:;] | \(|[“”]")
STRONG = 8  # letters outside its holes from which a template is taken for itself
LONGEST_RUN = 6  # sentences that one template holds


def holes_of(text: str) -> set[str]:
    """The numbers of a template's holes."""
    return set(HOLE.findall(text))


class _Template:
    """A sentence with holes: `segments` are the words between them, `letters` how many."""

    def __init__(self, source: str, target: str) -> None:
        pieces = HOLE.split(source)
        self.segments, self.numbers, self.target = pieces[::2], pieces[1::2], target
        self.letters = sum(len(word) for s in self.segments for word in LETTERS.findall(s))

    def match(self, text: str) -> list[str] | None:
        """What stands in the holes, each as short as can be."""
        first, *middle, last = self.segments
        at, end = len(first), len(text) - len(last)
        if not text.startswith(first) or not text.endswith(last) or end < at:
            return None
        found = []
        for segment in middle:
            if (place := text.find(segment, at, end)) < 0:
                return None
            found.append(text[at:place])
            at = place + len(segment)
        return [*found, text[at:end]]

    def at_ends(self, holes: list[str]) -> list[str]:
        """Of what stands in the holes, what begins or ends the text."""
        return [
            *([] if self.segments[0] else holes[:1]),
            *([] if self.segments[-1] else holes[-1:]),
        ]

    def sure_words(self) -> list[str]:
        """Words that any text of this template has as they are: those that touch no hole."""
        marked = "\0".join(self.segments)
        return [
            match.group()
            for match in LETTERS.finditer(marked)
            if "\0" not in marked[max(0, match.start() - 1) : match.end() + 1]
        ]


class Catalog:
    """Sentences and templates of one language.

    Args: entries: what is said in English, with what it is in the other language.
    """

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._exact = {source: target for source, target in entries.items() if target}
        for source, target in list(self._exact.items()):  # of an item of a list, what it says
            head, body, _ = LINE.match(source).groups()  # type: ignore[union-attr]
            if head.strip() and target.startswith(head):
                self._exact.setdefault(body, target.removeprefix(head))
            if source.endswith(".") and target.endswith("。") and not HOLE.search(source):
                self._exact.setdefault(source[:-1], target[:-1])  # at the end of another's
        templates = [_Template(s, t) for s, t in self._exact.items() if HOLE.search(s)]
        common = Counter(word for t in templates for word in set(t.sure_words()))
        self._by_word: dict[str, list[_Template]] = defaultdict(list)
        for template in templates:
            words = template.sure_words()
            self._by_word[min(words, key=lambda w: (common[w], -len(w))) if words else ""].append(
                template
            )
        self.translate = lru_cache(maxsize=20_000)(self._translate)

    def _translate(self, text: str) -> str:
        """The text in the other language, as far as the catalog has it."""
        return self._any(text, inside=False)

    def _any(self, text: str, *, inside: bool) -> str:
        if not LETTER.search(text):
            return text
        head, body, tail = LINE.match(text).groups()  # type: ignore[union-attr]
        whole = self._whole(body, inside)
        if whole is None:
            whole = self._apart(body, inside)
        return f"{head}{whole}{tail}"

    def _whole(self, text: str, inside: bool, loose: bool = False) -> str | None:
        """The text by one entry, or None."""
        variants = [text]
        if text[:1].isalpha():  # a sentence may begin with what stands inside one
            variants.append(text[0].swapcase() + text[1:])
        # One capitalized word in a hole is a name more likely than a button's label.
        is_name = inside and text[:1].isupper() and " " not in text
        for variant in () if is_name else variants:
            if (found := self._exact.get(variant)) is not None:
                return found
        for variant in variants:
            if (found := self._by_template(variant, inside, loose, text[-1:])) is not None:
                return found
        if text[-1:] in WIDE_MARKS:
            bare = [variant[:-1].rstrip() for variant in variants]
            for variant in () if is_name else bare:
                if (found := self._exact.get(variant)) is not None:
                    return found + _mark(text[-1], found)
            for variant in bare:
                if (found := self._by_template(variant, inside, loose)) is not None:
                    return found + _mark(text[-1], found)
        return None

    def _by_template(self, text: str, inside: bool, loose: bool, mark: str = "") -> str | None:
        """The text by the template that says most of it; no hole takes the mark at its end."""
        words = {"", *LETTERS.findall(text)}
        near = [t for word in words for t in self._by_word.get(word, ())]
        second = None  # a template with a part of a sentence in its first hole
        for template in sorted(near, key=lambda t: -t.letters):
            holes = template.match(text)
            if holes is None or (mark in WIDE_MARKS and not template.segments[-1]):
                continue
            if template.letters < 2 * STRONG and any(
                " ·" in h or "· " in h for h in template.at_ends(holes)
            ):
                continue  # they would take what stands beside this
            if not loose and any(SENTENCE.search(h) or "\n" in h for h in holes):
                continue
            if template.letters < STRONG and not self._is_sure(holes, inside):
                continue
            if not template.segments[0] and PART.search(holes[0]):
                second = second or (template, holes)
                continue
            return self._filled(template, holes)
        return self._filled(*second) if second else None

    def _is_sure(self, holes: list[str], inside: bool) -> bool:
        """Whether a template of few letters may be what was meant: what stands in its holes is
        known, but for one name where it stands for itself."""
        if any(mark in h for h in holes for mark in (*SEPARATORS, "**")):
            return False
        known = {h: not LETTERS.search(h) or self._knows(h.strip()) for h in holes if h}
        names = [h for h, is_known in known.items() if not is_known]
        return not names or (not inside and len(known) > len(names) == 1 and " " not in names[0])

    def _knows(self, text: str) -> bool:
        return text in self._exact or text[:1].swapcase() + text[1:] in self._exact

    def _filled(self, template: _Template, holes: list[str]) -> str:
        values = {}
        for place, (number, value) in enumerate(zip(template.numbers, holes, strict=True)):
            before, behind = template.segments[place], template.segments[place + 1]
            quoted = before[-1:] in "`“\"'" and behind[:1] in "`”\"'" and before and behind
            said = value if quoted else self._any(value, inside=True)
            values[number] = said if said == value else EDGE + said + EDGE
        filled = HOLE.sub(lambda hole: values.get(hole[1], ""), template.target)
        return SEAM.sub("", filled).replace(EDGE, "")  # no space between wide characters

    # --- a text of several parts ---

    def _apart(self, text: str, inside: bool) -> str:
        for separator in ("\n\n", "\n"):
            if separator in text:
                return separator.join(self._any(t, inside=inside) for t in text.split(separator))
        if text.startswith("|") and text.endswith("|"):
            return "|".join(self._any(cell, inside=inside) for cell in text.split("|"))
        parts = SENTENCE.split(text)
        if len(parts) > 1:
            said = self._sentences(parts, inside)
            return said if said != text else self._whole(text, inside, loose=True) or text
        if (match := WRAPPED.fullmatch(text)) and _fits(match[1], match[3]):
            return match[1] + self._any(match[2], inside=inside) + match[3]
        places = sorted((text.find(s), s) for s in SEPARATORS if text.find(s) > 0)
        for place, separator in places:  # what leads to a sentence: "At τ = 1, …", "a run: …"
            if (whole := self._whole(text[place + len(separator) :], inside)) is not None:
                return _beside(self._any(text[:place], inside=inside), separator, whole)
        for separator in SEPARATORS:
            if separator in text:
                said = self._split(text, separator, inside)
                if said != text:
                    return said
        return text

    def _sentences(self, parts: list[str], inside: bool) -> str:
        """Sentences and what stands between them: as many at once as one entry holds."""
        said, at, count = "", 0, (len(parts) + 1) // 2
        while at < count:
            for length in range(min(LONGEST_RUN, count - at), 0, -1):
                run = "".join(parts[2 * at : 2 * (at + length) - 1])
                whole = self._whole(run, inside)
                if whole is not None:
                    break
            else:
                length, whole = 1, self._apart(parts[2 * at], inside)
            at += length
            gap = parts[2 * at - 1] if at < count else ""
            said += whole + ("" if gap == " " and WIDE.match(whole[-1:]) else gap)
        return said

    def _split(self, text: str, separator: str, inside: bool) -> str:
        """Parts between separators; beside a wide character one becomes a wide mark."""
        parts = text.split(separator)
        said = [self._any(part, inside=inside) for part in parts]
        if said == parts:
            return text
        return reduce(lambda before, part: _beside(before, separator, part), said)


def _beside(before: str, separator: str, behind: str) -> str:
    """Two parts with what stands between them, a wide mark where one of them is wide there."""
    wide = WIDE_MARKS.get(separator.strip(), "")
    is_wide = WIDE.match(before[-1:]) or WIDE.match(behind[:1])
    return before + (wide if wide and is_wide else separator) + behind


def _mark(mark: str, said: str) -> str:
    """A mark at the end, wide behind a wide character."""
    return WIDE_MARKS[mark] if WIDE.match(said[-1:]) else mark


def _fits(opening: str, closing: str) -> bool:
    if opening.endswith("["):
        return closing.startswith("]")
    return PAIRS.get(opening, "") == closing
