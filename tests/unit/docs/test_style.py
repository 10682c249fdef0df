"""Plain words: short sentences and none of the phrases that `STYLE.md` bans, in README and docs."""

import re

from babel.messages.pofile import read_po
from cases import cases

from contrastive_core.base.storage import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if not {"generated", "_build"} & set(path.parts)),
]
LONGEST = 25  # words
BANNED = """
so that|of which|as many as|be it|no more than that|lest|the latter|the former|to the last bit|at work|is told|that lie
mean harm|whatever it is given|wait for their turn|a process apart|at hand|thereof|hereby|in the place of|stands beside
stand beside|said of|what is kept|what it makes of|tell apart|is no matter
""".replace("\n", "|").strip("|")
STILTED = """
told apart|cannot be told|whatever|anew|waits for its turn|to the last|stands now|which is that of|of whom|to which
take it for|what it is|left alone; the others|in a process of its own|looked at for
""".replace("\n", "|").strip("|")  # more that the interface had
BLOCK = re.compile(r"^(`{3,}|:{3,}|\$\$).*?^\1[ \t]*$", re.M | re.S)


def sentences(text):
    """The sentences of a Markdown page's prose, without code, formulas, headings, tables and targets of links."""
    text = BLOCK.sub("\n\n", text)
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"\$[^$\n]+\$", "formula", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"(?m)^(#|\|).*$", "", text)
    text = re.sub(r"(?m)^\s*(?:[-*]|\d+\.|:)\s+", "\n\n", text)
    for block in re.split(r"\n\s*\n", text):
        yield from (s.strip() for s in re.split(r"(?<=[.!?])\s+", " ".join(block.split())) if s.strip())


def test_the_splitter_finds_sentences():
    text = "# Head\n\nOne two. Three `a b c` four!\n\n- five\n- six\n\n```\nnot this\n```\n| a | b c |\n|---|---|\n"
    assert list(sentences(text)) == ["One two.", "Three code four!", "five", "six"]


def test_sentences_are_short():
    """95 % of all sentences have 25 words at most, and of every page with more than 20 sentences too."""
    counts = {path: [len(s.split()) for s in sentences(path.read_text("utf-8"))] for path in PAGES}
    long = {path: sum(n > LONGEST for n in words) / len(words) for path, words in counts.items() if len(words) > 20}
    assert not {str(path.relative_to(ROOT)): f"{share:.0%}" for path, share in long.items() if share > 0.05}


def interface():
    """Every English text of the interface, plural forms included."""
    for path in (ROOT / "contrastive_lab" / "locale" / "zh" / "LC_MESSAGES").glob("*.po"):
        for message in read_po(path.open("rb")):
            yield from message.id if isinstance(message.id, tuple) else [message.id]


def test_texts_of_the_interface_are_plain():
    """95 % of its sentences have 25 words at most, and no text has a phrase that `STYLE.md` bans."""
    texts = list(interface())
    words = [len(s.split()) for text in texts for s in re.split(r"(?<=[.!?])\s+", text) if s]
    assert sum(n > LONGEST for n in words) < 0.05 * len(words)
    assert not [text for text in texts if re.search(rf"\b(?:{BANNED}|{STILTED})\b", text, re.I)]


def test_links_between_files_of_the_repository():
    """Sphinx checks the site; these pages are read in the repository."""
    broken = set()
    for path in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)", BLOCK.sub("", path.read_text("utf-8"))):
            if "://" not in target and "generated/" not in target and not (path.parent / target).exists():
                broken.add(f"{path.name}: {target}")
    assert not broken


@cases("path", PAGES)
def test_no_banned_phrase(path):
    found = re.findall(rf"\b(?:{BANNED})\b", " ".join(sentences(path.read_text("utf-8"))), re.I)
    assert not found
