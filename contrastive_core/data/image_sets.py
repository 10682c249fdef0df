"""Data sets of image files, by name: a folder or a list of them, decoded to a form. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from contrastive_core.data import as_before, image_cache, image_folder, image_list
from contrastive_core.data.image_folder import ImageFile, Listing
from contrastive_core.data.image_form import SMALL, USUAL, ImageForm
from contrastive_core.progress import OnProgress, ignore_progress
from contrastive_core.storage.regular import printable

__all__ = ["Plan", "listings_of", "plan", "usual_side", "why_empty"]

FOLDER, LIST = "folder:", "csv:"


class Plan(NamedTuple):
    """The cache key of a split, its form with the size it has, how to decode it, and what has to be
    said of the folder."""

    key: str
    form: ImageForm
    make: Callable[[], dict[str, Any]]
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
) -> Plan:
    """How a split is decoded below `home`, and under which key.

    Raises: ValueError for what is no such data set, or has no images.
    """
    listings = listings_of(name)
    listing = listings[split]
    if not listing.files:
        raise ValueError(why_empty(name, listing, split))
    remarks = tuple(image_folder.remarks(listing))
    where = str(Path(name.removeprefix(FOLDER)).expanduser().resolve())
    if name.startswith(LIST):
        path, column = image_list.list_and_column(name.removeprefix(LIST))
        where = f"{path.resolve()}#{column}"
    if form.size == 0:
        key = as_before.cache_key(where, listing, split)
        return Plan(key, form, lambda: as_before.decode(listing, home), remarks)
    training = listings["train"].files or listing.files
    if form.size is None:
        form = ImageForm(usual_side(training), form.resize)
    key = image_cache.cache_key(where, listings, split, form)

    def make() -> dict[str, Any]:
        gray = image_cache.all_gray(training)
        return image_cache.decode(listing, gray, form, home / f"{key}.partial", on_progress)

    return Plan(key, form, make, remarks)


def why_empty(name: str, listing: Listing, split: str) -> str:
    """The sentence for a data set without images of a split."""
    if not name.startswith(LIST):
        return image_folder.why_empty(name.removeprefix(FOLDER), listing, split)
    text = f"{printable(name)} names no images for {split} that are there"
    if not listing.skipped:
        return text
    first, reason = listing.skipped[0]
    return f"{text}; {len(listing.skipped):,} were left out, the first {first}: {reason}"


def usual_side(files: list[ImageFile]) -> int:
    """The side where neither a person nor an encoder names one: the median of the shorter sides, at
    most SMALL."""
    return max(4, min(SMALL, image_cache.median_side(files)))
