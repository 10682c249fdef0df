"""To what size the images of a folder are brought, and what that takes on the disk."""

from __future__ import annotations

import shutil

import streamlit as st

from contrastive_core.data.folder_preview import values_of
from contrastive_core.data.image_cache import space_of
from contrastive_core.data.image_form import LARGEST, RESIZES, SMALL
from contrastive_core.paths import data_home
from contrastive_lab import cache, query_params

__all__ = ["as_settings", "image_form", "wrong_size"]

HOW = {"crop": "crop to the middle", "pad": "pad with black"}
EXAMPLES = (64, 224)


def image_form(folder: str) -> list[str]:
    """The settings `image_size` and `resize` for a folder's images, as arguments of `train`."""
    size = query_params.optional_number(
        st.number_input, "Image size in pixels", 4, LARGEST, name="image_size",
        placeholder="what the encoder was made for",
        help="224 for encoders that were made for ImageNet and for timm's, unless they name "
        f"another; else the median of the images' shorter sides, at most {SMALL}.",
    )  # fmt: skip
    resize = query_params.one_of(
        st.selectbox, "Resize", RESIZES, name="resize", format_func=HOW.__getitem__
    )
    if text := on_disk(folder, int(size) if size else None):
        st.caption(text)
    return ["--resize", resize, *(["--image-size", str(int(size))] if size else [])]


def wrong_size(folder: str, arguments: list[str]) -> str:
    """Why the decoded images do not fit on the disk, once it is known how many there are."""
    result = cache.result("folder", values_of(folder))
    if result is None or "--image-size" not in arguments:
        return ""
    n = sum(sum(counts) for counts in result.meta["counts"])
    side = int(arguments[arguments.index("--image-size") + 1])
    home = data_home()
    free = shutil.disk_usage(home if home.exists() else home.parent).free
    if (needed := space_of(n, side)) < free:
        return ""
    return (
        f"Decoded at {side} pixels, {n:,} images take {needed / 1e9:,.1f} GB, and "
        f"{free / 1e9:,.1f} GB are free: choose a smaller size."
    )


def on_disk(folder: str, chosen: int | None = None) -> str:
    """What the decoded images take at the chosen size in pixels, or at two usual ones, once it is
    known how many there are."""
    result = cache.result("folder", values_of(folder))
    if result is None:
        return ""
    n = sum(sum(counts) for counts in result.meta["counts"])
    sides = EXAMPLES if chosen is None else (chosen,)
    sizes = [f"{space_of(n, side) / 1e6:,.0f} MB at {side} pixels" for side in sides]
    home = data_home()
    there = home if home.exists() else home.parent
    free = f"; {shutil.disk_usage(there).free / 1e9:,.0f} GB are free" if there.exists() else ""
    return f"Decoded once, {n:,} images in color take {', '.join(sizes)}{free}."


def as_settings(arguments: list[str]) -> list[str]:
    """Options of `train` with their values, as lines of `--set`."""
    pairs = zip(arguments[::2], arguments[1::2], strict=True)
    return [f"{name.removeprefix('--')}={value}" for name, value in pairs]
