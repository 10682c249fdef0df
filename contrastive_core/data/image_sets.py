"""Data sets of image files, by name: a folder or a list of them, decoded to a form. Torch-free.

A look at a million files takes seconds. What it found is kept, without the files, while the folders
are as they were and no longer than a hundred times as long as the look took: `known` for pages,
which ask at every turn. `plan`, which decodes, always looks afresh.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from contrastive_core.data import as_before, image_cache, image_folder, image_list
from contrastive_core.data.image_folder import Listing
from contrastive_core.data.image_form import SMALL, USUAL, ImageForm
from contrastive_core.paths import follow_links
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.storage.regular import printable
from contrastive_core.storage.remembered import FRESH, Stamp, stamp_of

__all__ = ["Split", "known", "listings_of", "plan", "usual_side", "why_empty"]

FOLDER, LIST = "folder:", "csv:"
TIMES = 100  # as long as a look took, what it found is kept at most
MOST = 32  # data sets of which it is kept
FOLDERS = 10_000  # folders at most that are looked at again


class Split(NamedTuple):
    """The cache key of a split, its form with the size it has, and what has to be said of it."""

    key: str
    form: ImageForm
    remarks: tuple[str, ...]


def listings_of(name: str) -> dict[str, Listing]:
    """What `folder:PATH` or `csv:PATH` holds of each split. Raises ValueError for what cannot be
    used."""
    if name.startswith(LIST):
        return image_list.listings(name.removeprefix(LIST))
    return image_folder.listings(name.removeprefix(FOLDER))


def plan(
    name: str,
    split: str,
    home: Path,
    form: ImageForm = USUAL,
    on_progress: OnProgress = ignore_progress,
) -> tuple[Split, Callable[[], dict[str, Any]]]:
    """A split as it is now, and how to decode it below `home`.

    Raises: ValueError for what is no such data set, or has no images.
    """
    begun = time.monotonic()
    listings = listings_of(name)
    if not listings[split].files:
        raise ValueError(why_empty(name, listings[split], split))
    where = str(Path(name.removeprefix(FOLDER)).expanduser().resolve())
    if name.startswith(LIST):
        path, column = image_list.list_and_column(name.removeprefix(LIST))
        where = f"{path.resolve()}#{column}"
    training, size = listings["train"].files or listings[split].files, form.size
    sized = (
        ImageForm(usual_side(image_cache.median_side(training)), form.resize)
        if size is None
        else form
    )
    keys = (
        {s: as_before.cache_key(where, listing, s) for s, listing in listings.items()}
        if size == 0
        else image_cache.cache_keys(where, listings, sized)
    )
    remarks = tuple(image_folder.remarks(*listings.values()))  # of the whole folder, for each split
    about = {s: Split(keys[s], sized, remarks) for s, listing in listings.items() if listing.files}
    _keep(_asked(name, form), about, listings, time.monotonic() - begun)

    def make() -> dict[str, Any]:
        if size == 0:
            return as_before.decode(listings[split], home)
        (other,) = set(listings) - {split}
        channels = image_cache.made_channels(home / keys["train"])
        if channels is None:
            channels = image_cache.common_channels(training, on_progress)
        later = image_cache.Partial(
            [] if (home / keys[other] / "about.json").exists() else listings[other].files,
            home / f"{keys[other]}.partial", sized.size or 0, channels, sized.resize,
        )  # fmt: skip
        folder = home / f"{keys[split]}.partial"
        return image_cache.decode(listings[split], channels, sized, folder, on_progress, later)

    return about[split], make


# --- what was found before ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """What a look found, how the folders were before it, and until when it counts."""

    about: dict[str, Split]
    seen: dict[str, Stamp | None]
    until: float


_found: dict[tuple[Any, ...], _Found] = {}
_lock = threading.Lock()


def known(name: str, split: str, form: ImageForm = USUAL) -> Split | None:
    """What `plan` found in this process, if it still holds as far as the folders tell: a file that
    was written over in its place is seen later, one that was added or taken away at once."""
    found = _found.get(_asked(name, form))
    if found is None or time.monotonic() > found.until:
        return None
    is_same = all(stamp_of(Path(folder)) == stamp for folder, stamp in found.seen.items())
    return found.about.get(split) if is_same else None


def _asked(name: str, form: ImageForm) -> tuple[Any, ...]:
    return name, form, os.getcwd(), follow_links()


def _keep(
    asked: tuple[Any, ...], about: dict[str, Split], listings: dict[str, Listing], took: float
) -> None:
    seen = {folder: stamp for one in listings.values() for folder, stamp in one.seen.items()}
    latest = max((stamp[2] / 1e9 for stamp in seen.values() if stamp), default=0.0)
    if time.time() - took - latest < FRESH:
        return  # what was just written may change again within a tick of its clock
    some = dict(list(seen.items())[:: max(1, -(-len(seen) // FOLDERS))])
    with _lock:
        _found.pop(asked, None)
        _found[asked] = _Found(about, some, time.monotonic() + TIMES * took)
        while len(_found) > MOST:
            del _found[next(iter(_found))]


def why_empty(name: str, listing: Listing, split: str) -> str:
    """The sentence for a data set without images of a split."""
    if not name.startswith(LIST):
        return image_folder.why_empty(name.removeprefix(FOLDER), listing, split)
    text = f"{printable(name)} names no images for {split} that are there"
    if not listing.skipped:
        return text
    first, reason = listing.skipped[0]
    return f"{text}; {len(listing.skipped):,} were left out, the first {first}: {reason}"


def usual_side(median: int) -> int:
    """The side where neither a person nor an encoder names one: the median of the shorter sides, at
    most SMALL."""
    return max(4, min(SMALL, median))
