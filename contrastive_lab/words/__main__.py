"""`python -m contrastive_lab.words`: brings the catalog up to date with the source.

    python -m contrastive_lab.words                    # adds and drops entries, tells what lacks
    python -m contrastive_lab.words parts DIR [COUNT]  # what is missing, as JSON for translators
    python -m contrastive_lab.words take FILE...       # such files with translations, back in

A part is a list of {"msgid", "msgstr", "references"}; a translation may leave out holes of its
sentence and put them in another order, and may not have others.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import polib

from contrastive_lab.words import PO
from contrastive_lab.words.extract import extract

__all__ = ["fault_of", "main", "references"]

HOLE = re.compile(r"\{\w*\}")
BOLD = re.compile(r"\*\*(.+?)\*\*(.?)", re.S)
UNCLOSED = re.compile(r"[。，：；！？）”]\*\*\w")
METADATA = {"Content-Type": "text/plain; charset=UTF-8", "Language": "zh_CN"}


def main(arguments: list[str]) -> int:
    """The command; 1 where a part was refused."""
    catalog = _updated()
    refused = 0
    if arguments[:1] == ["take"]:
        for name in arguments[1:]:
            refused += _take(catalog, Path(name))
    catalog.save(str(PO))
    missing = [entry for entry in catalog if not entry.msgstr]
    if arguments[:1] == ["parts"]:
        _write_parts(missing, Path(arguments[1]), int((arguments[2:] or ["5"])[0]))
    print(f"{len(catalog)} entries, {len(missing)} without a translation")
    for entry in missing[:20]:
        print(f"  {entry.occurrences[0][0]}: {entry.msgid[:80]!r}")
    return 1 if refused else 0


def references() -> dict[str, list[str]]:
    """The templates of the source, each with the files that it is in."""
    found: dict[str, list[str]] = {}
    for one in extract():
        files = found.setdefault(one.text, [])
        if one.file not in files:
            files.append(one.file)
    return found


def fault_of(source: str, target: str) -> str:
    """What is wrong with a translation, or ""."""
    if strange := set(HOLE.findall(target)) - set(HOLE.findall(source)):
        return f"holes that its sentence does not have: {', '.join(sorted(strange))}"
    if source.count("**") % 2 == 0 and target.count("**") % 2:
        return "an odd number of **"
    if UNCLOSED.search("".join(f"**{bold}**{next_}" for bold, next_ in BOLD.findall(target))):
        return "a mark before ** and a letter behind: Markdown takes this for no end of the bold"
    return "" if target.strip() else "empty"


def _updated() -> polib.POFile:
    """The catalog with the templates of the source, and with what it says of them."""
    known = {e.msgid: e.msgstr for e in polib.pofile(str(PO))} if PO.exists() else {}
    catalog = polib.POFile(wrapwidth=100)
    catalog.metadata = METADATA
    for text, files in references().items():
        catalog.append(
            polib.POEntry(
                msgid=text, msgstr=known.get(text, ""), occurrences=[(f, "") for f in files]
            )
        )
    return catalog


def _take(catalog: polib.POFile, path: Path) -> int:
    """Take a part's translations in; how many were refused."""
    entries, refused = {entry.msgid: entry for entry in catalog}, 0
    for one in json.loads(path.read_text("utf-8")):
        source, target = one["msgid"], one.get("msgstr", "")
        if not target:
            continue
        if fault := fault_of(source, target) or ("" if source in entries else "no such sentence"):
            refused += 1
            print(f"{path.name}: {source[:80]!r}: {fault}")
        else:
            entries[source].msgstr = target
    return refused


def _write_parts(missing: list[polib.POEntry], folder: Path, count: int) -> None:
    """What is missing as `count` files of about as many letters, files of the source together."""
    folder.mkdir(parents=True, exist_ok=True)
    total = sum(len(e.msgid) + 20 for e in missing)
    parts: list[list[dict[str, object]]] = [[] for _ in range(count)]
    seen = 0
    for entry in missing:
        part = parts[min(count - 1, seen * count // max(total, 1))]
        files = [name for name, _ in entry.occurrences]
        part.append({"msgid": entry.msgid, "msgstr": "", "references": files})
        seen += len(entry.msgid) + 20
    for number, part in enumerate(parts, 1):
        text = json.dumps(part, ensure_ascii=False, indent=1)
        (folder / f"part_{number}.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
