"""Data sets of image files by name: a folder or a list, decoded to one size. Listing a million files takes seconds, so
the result, without the files, is cached for pages (`known`) until a folder changes, for at most a hundred times the
duration of the listing. `plan`, which decodes, always lists the files again."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from contrastive_core.base.messages import message
from contrastive_core.base.paths import data_home, follow_links
from contrastive_core.base.progress import OnProgress, ignore_progress
from contrastive_core.base.safe_files import FRESH, FileStamp, file_stamp, printable
from contrastive_core.data import image_cache, image_folder, image_list
from contrastive_core.data.dataset import SMALL, USUAL, DatasetArrays, ImageForm
from contrastive_core.data.image_folder import Listing

PREFIXES = FOLDER, LIST = "folder:", "csv:"  # prefixes of data sets of image files
TIMES = 100  # a listing is cached for at most this many times its duration
MOST = 32  # cached listings
FOLDERS = 10_000  # folders of a listing that are checked for changes


class Split(NamedTuple):
    """The cache key of a split, its form with a definite size, and remarks on the folder."""

    key: str
    form: ImageForm
    remarks: tuple[str, ...]


Listings = dict[str, Listing]  # by split


def listings_of(name: str) -> Listings:
    """List the files of `folder:PATH` or `csv:PATH`. Raises ValueError for unusable paths."""
    if name.startswith(LIST):
        return image_list.listings(name.removeprefix(LIST))
    return image_folder.listings(name.removeprefix(FOLDER))


def plan(
    name: str,
    split: str,
    form: ImageForm = USUAL,
    on_progress: OnProgress = ignore_progress,
    listings: Listings | None = None,
) -> tuple[Split, Callable[[], DatasetArrays]]:
    """Return the current state of a split, and a function that decodes it below the data home. `listings`: of the data
    set, if it was listed already. Raises: ValueError for an unknown data set or one without images."""
    begun = time.monotonic()
    listings = listings_of(name) if listings is None else listings
    if not listings[split].files:
        raise ValueError(why_empty(name, listings[split], split))
    training = listings["train"].files or listings[split].files
    request = _request(name, form)
    if form.size is None:
        form = ImageForm(usual_side(image_cache.median_side(training)), form.resize)
    if name.startswith(LIST):
        path, column = image_list.list_and_column(name.removeprefix(LIST))
        where = f"{path.resolve()}#{column}"
    else:
        where = str(Path(name.removeprefix(FOLDER)).expanduser().resolve())
    keys = image_cache.cache_keys(where, listings, form)
    remarks = tuple(image_folder.remarks(*listings.values()))  # on the whole folder, for each split
    splits = {s: Split(keys[s], form, remarks) for s, listing in listings.items() if listing.files}
    _keep(request, splits, listings, time.monotonic() - begun)

    def create() -> DatasetArrays:
        home = data_home() / "data"
        channels = image_cache.made_channels(home / keys["train"])
        if channels is None:
            channels = image_cache.common_channels(training, on_progress)
        partials = {
            s: image_cache.Partial(listings[s].files, home / f"{keys[s]}.partial", form, channels) for s in splits
        }
        later = [p for s, p in partials.items() if s != split and not (home / keys[s] / "about.json").exists()]
        return image_cache.decode(listings[split], partials[split], on_progress, later)

    return splits[split], create


class _Found(NamedTuple):
    """A cached listing: its splits, the folders' stamps before it, and its expiry time."""

    splits: dict[str, Split]
    seen: dict[str, FileStamp | None]
    until: float


Request = tuple[str, ImageForm, str, bool]  # name, form, working folder, whether links are followed
_found: dict[Request, _Found] = {}
_lock = threading.Lock()


def known(name: str, split: str, form: ImageForm = USUAL) -> Split | None:
    """Return the result of `plan` in this process, unless a folder has changed since. Added and removed
    files are noticed at once, overwritten ones only after the listing expires."""
    found = _found.get(_request(name, form))
    if found is None or time.monotonic() > found.until:
        return None
    is_same = all(file_stamp(Path(folder)) == stamp for folder, stamp in found.seen.items())
    return found.splits.get(split) if is_same else None


def _request(name: str, form: ImageForm) -> Request:
    return name, form, os.getcwd(), follow_links()


def _keep(request: Request, splits: dict[str, Split], listings: Listings, took: float) -> None:
    seen = [item for listing in listings.values() for item in listing.seen.items()]
    latest = max((stamp[2] / 1e9 for _, stamp in seen if stamp), default=0.0)
    if time.time() - took - latest < FRESH:
        return  # a file just written may change again within a clock tick
    some = dict(seen[:: len(seen) // FOLDERS + 1])
    with _lock:
        _found.pop(request, None)
        _found[request] = _Found(splits, some, time.monotonic() + TIMES * took)
        while len(_found) > MOST:
            del _found[next(iter(_found))]


def why_empty(name: str, listing: Listing, split: str) -> str:
    """Return the error text for a split without images."""
    if not name.startswith(LIST):
        return image_folder.why_empty(name.removeprefix(FOLDER), listing, split)
    text = message("{name} lists no existing images for {split}", name=printable(name), split=split)
    if not listing.skipped:
        return text
    first, reason = listing.skipped[0]
    values = {"text": text, "skipped": f"{len(listing.skipped):,}", "first": first, "reason": reason}
    return message("{text}; {skipped} were left out, the first {first}: {reason}", **values)


def usual_side(median: int) -> int:
    """Return the default image side: the median of the shorter sides, at least 4 and at most SMALL."""
    return max(4, min(SMALL, median))
