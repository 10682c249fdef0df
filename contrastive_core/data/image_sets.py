"""Data sets of image files, by name: a folder or a list of them, decoded to one size.

Listing a million files takes seconds. Its result, without the files, is cached for pages (`known`)
until a folder changes, and at most a hundred times as long as the listing took. `plan`, which
decodes, always lists the files again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from contrastive_core.data import image_cache, image_folder, image_list
from contrastive_core.data.dataset import DatasetArrays
from contrastive_core.data.image_folder import Listing
from contrastive_core.messages import message
from contrastive_core.paths import follow_links
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.records.image_form import SMALL, USUAL, ImageForm
from contrastive_core.storage.file_cache import FRESH, FileStamp, file_stamp
from contrastive_core.storage.regular_files import printable

FOLDER, LIST = "folder:", "csv:"
TIMES = 100  # a listing is cached for at most this many times its duration
MOST = 32  # cached listings
FOLDERS = 10_000  # folders of a listing that are checked for changes


class Split(NamedTuple):
    """The cache key of a split, its form with a size, and remarks on the folder."""

    key: str
    form: ImageForm
    remarks: tuple[str, ...]


Listings = dict[str, Listing]  # by split


def listings_of(name: str) -> Listings:
    """List the files of `folder:PATH` or `csv:PATH`. Raises ValueError for what cannot be used."""
    if name.startswith(LIST):
        return image_list.listings(name.removeprefix(LIST))
    return image_folder.listings(name.removeprefix(FOLDER))


def plan(
    name: str,
    split: str,
    home: Path,
    form: ImageForm = USUAL,
    on_progress: OnProgress = ignore_progress,
    listings: Listings | None = None,
) -> tuple[Split, Callable[[], DatasetArrays]]:
    """Return a split as it is now, and a function that decodes it below `home`.

    Args: listings: of the data set, if it was listed already.
    Raises: ValueError for what is no such data set, or has no images.
    """
    begun = time.monotonic()
    listings = listings_of(name) if listings is None else listings
    if not listings[split].files:
        raise ValueError(why_empty(name, listings[split], split))
    training = listings["train"].files or listings[split].files
    if form.size is None:
        form_with_size = ImageForm(usual_side(image_cache.median_side(training)), form.resize)
    else:
        form_with_size = form
    keys = image_cache.cache_keys(_location(name), listings, form_with_size)
    remarks = tuple(image_folder.remarks(*listings.values()))  # on the whole folder, for each split
    about = {s: Split(keys[s], form_with_size, remarks) for s, listing in listings.items() if listing.files}
    _keep(_request(name, form), about, listings, time.monotonic() - begun)

    def create() -> DatasetArrays:
        channels = image_cache.made_channels(home / keys["train"])
        if channels is None:
            channels = image_cache.common_channels(training, on_progress)
        parts = {
            s: image_cache.Partial(listing.files, home / f"{keys[s]}.partial", form_with_size, channels)
            for s, listing in listings.items()
            if s == split or not (home / keys[s] / "about.json").exists()
        }
        part = parts.pop(split)
        return image_cache.decode(listings[split], part, on_progress, next(iter(parts.values()), None))

    return about[split], create


def _location(name: str) -> str:
    """Return the absolute path of a folder, or of a list with its column of classes."""
    if name.startswith(LIST):
        path, column = image_list.list_and_column(name.removeprefix(LIST))
        return f"{path.resolve()}#{column}"
    return str(Path(name.removeprefix(FOLDER)).expanduser().resolve())


# --- cached listings ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """A cached listing: its splits, the folders' stamps before it, and when it expires."""

    about: dict[str, Split]
    seen: dict[str, FileStamp | None]
    until: float


Request = tuple[str, ImageForm, str, bool]  # name, form, working folder, whether links are followed
_found: dict[Request, _Found] = {}
_lock = threading.Lock()


def known(name: str, split: str, form: ImageForm = USUAL) -> Split | None:
    """Return what `plan` found in this process, unless a folder has changed since. A file that was
    added or removed is noticed at once, one that was overwritten only after the listing expires."""
    found = _found.get(_request(name, form))
    if found is None or time.monotonic() > found.until:
        return None
    is_same = all(file_stamp(Path(folder)) == stamp for folder, stamp in found.seen.items())
    return found.about.get(split) if is_same else None


def _request(name: str, form: ImageForm) -> Request:
    return name, form, os.getcwd(), follow_links()


def _keep(request: Request, about: dict[str, Split], listings: dict[str, Listing], took: float) -> None:
    seen = {folder: stamp for one in listings.values() for folder, stamp in one.seen.items()}
    latest = max((stamp[2] / 1e9 for stamp in seen.values() if stamp), default=0.0)
    if time.time() - took - latest < FRESH:
        return  # what was just written may change again within a tick of its clock
    some = dict(list(seen.items())[:: max(1, -(-len(seen) // FOLDERS))])
    with _lock:
        _found.pop(request, None)
        _found[request] = _Found(about, some, time.monotonic() + TIMES * took)
        while len(_found) > MOST:
            del _found[next(iter(_found))]


def why_empty(name: str, listing: Listing, split: str) -> str:
    """Return the error text for a split without images."""
    if not name.startswith(LIST):
        return image_folder.why_empty(name.removeprefix(FOLDER), listing, split)
    text = message("{name} names no images for {split} that are there", name=printable(name), split=split)
    if not listing.skipped:
        return text
    first, reason = listing.skipped[0]
    return message(
        "{text}; {skipped} were left out, the first {first}: {reason}",
        text=text,
        skipped=f"{len(listing.skipped):,}",
        first=first,
        reason=reason,
    )


def usual_side(median: int) -> int:
    """Return the default side: the median of the shorter sides, at most SMALL."""
    return max(4, min(SMALL, median))
