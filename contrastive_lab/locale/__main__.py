"""Update the catalogs from the source: `python -m contrastive_lab.locale`."""

import re
import sys
import tomllib
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_file
from babel.messages.pofile import read_po, write_po

from contrastive_core.base.errors import LabError
from contrastive_core.base.storage import ROOT
from contrastive_lab.locale import FOLDER

SOURCES = {  # of each domain: the extractor and the files
    "contrastive_lab": ("python", ("app.py", "pages/*.py", "contrastive_lab/**/*.py", "contrastive_core/**/*.py")),
    "browser": ("javascript", ("contrastive_lab/components/**/*.js",)),
}
ERRORS = (error.__name__ for error in LabError.__subclasses__())  # raised with a template and its values
KEYWORDS = {**DEFAULT_KEYWORDS, "message": None, **dict.fromkeys(ERRORS)}
WORDS = """
temperature, denominator, normalize, detach, mining, symmetric, distance, cosine, euclidean, metric cosine,
metric euclidean, own positive, all, own, line, matrix, three, augmentations, mirror, crop, rotation, blur,
noise, grayscale, hue, brightness, contrast, saturation, cutout, sobel, augmented, context, form, shuffle,
optimizer, schedule, warm-up, encoder, head, enqueue, embedding, view, views, image, pictures, run, epochs,
seeds, progress, setting, value, why, paper, compared, labels, needed, class, example, table, done, running,
failed, stopped, created, trained, origin, mine, shipped, here, review, better, undecided, By kNN, press Run or
Step, Comparing, epoch, step, samples, share, bank, name,
status, method, title, tags
"""  # names and values of settings, and stages, that are shown as they are stored: the source marks them nowhere
CARDS = ("contrastive_core/methods/*.toml", "contrastive_core/losses/*.toml")
CARD_TEXTS = "title idea compared measured_by_paper differences paper_recipe summary source".split()
ENGLISH_ONLY = ("contrastive_lab/widgets/", "contrastive_lab/components/report/")


def extract(domain: str) -> Catalog:
    """Return the messages marked in the source, and the texts of the methods' and losses' cards."""
    catalog, (extractor, patterns) = Catalog(), SOURCES[domain]
    for path in _files(patterns):
        if not path.relative_to(ROOT).as_posix().startswith(ENGLISH_ONLY):
            for _line, message, _comments, _context in extract_from_file(extractor, path, KEYWORDS):
                catalog.add(message)
    if domain != "contrastive_lab":
        return catalog
    texts = [word.strip() for word in WORDS.replace("\n", " ").split(", ")]
    for path in _files(CARDS):
        card = tomllib.loads(path.read_text("utf-8"))
        for part in (card, *card.get("published", {}).values(), *(v for v in card.values() if isinstance(v, dict))):
            texts += [part[key] for key in CARD_TEXTS if key in part]
        texts += [row[-1] for key in ("builds_on", "terms") for row in card.get(key, ())]
        boxes = [box.rstrip("*") for key in ("flow", "updates") for row in card.get(key, ()) for box in row]
        texts += [box for box in boxes if re.search("[a-z]{2}", box)]
    for text in texts:
        catalog.add(text)
    return catalog


def _files(patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path for pattern in patterns for path in ROOT.glob(pattern)})


def read(domain: str) -> Catalog:
    """Return a catalog with its translations into Chinese."""
    with (FOLDER / "zh" / "LC_MESSAGES" / f"{domain}.po").open("rb") as file:
        return read_po(file, locale="zh")


def is_translated(entry: Message) -> bool:
    """Return whether a catalog's entry has a translation, in a plural form if it has such forms."""
    return any(entry.string or ()) if entry.pluralizable else bool(entry.string)


def main() -> int:
    """Add new messages, remove old ones, and list untranslated ones; return 1 if there are any."""
    missing: list[object] = []
    for domain in SOURCES:
        catalog = read(domain)
        catalog.update(extract(domain), no_fuzzy_matching=True, update_creation_date=False)
        catalog.obsolete.clear()
        with (FOLDER / "zh" / "LC_MESSAGES" / f"{domain}.po").open("wb") as file:
            write_po(file, catalog, width=100, no_location=True, omit_header=False, sort_output=True)
        missing += [m.id for m in catalog if m.id and not is_translated(m)]
    for source in missing:
        print(f"no translation: {source!r}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
