"""A folder of images, before it is trained on: its classes, and some of its images."""

from __future__ import annotations

from typing import Any

import streamlit as st

from contrastive_core.data.folder_preview import values_of
from contrastive_lab import cache, format
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.progress import answer_or_wait

__all__ = ["contents"]

CLASSES = 12  # that are named with their sizes


def contents(folder: str) -> None:
    """What a training would get of it."""
    st.subheader("What it holds")
    result = answer_or_wait("folder", values_of(folder), "The images")
    if result is None:
        return
    st.markdown(format.plain(summary(result.meta)))
    captions = [_caption(result.meta, row) for row in range(len(result.meta["ids"]))]
    picked = draw_gallery(
        result.arrays["images"], captions, size=64, title="images of the folder",
        key=f"folder-{cache.digest(folder)}",
    )  # fmt: skip
    names = [result.meta["ids"][row] for row in picked]
    st.caption(format.plain(", ".join(names)) if names else "Press an image for its file's name.")
    if left_out := result.meta["left_out"]:
        n = result.meta["n_left_out"]
        with st.expander(f"{n:,} files are left out" if n > 1 else "1 file is left out"):
            st.code("\n".join(f"{name}: {reason}" for name, reason in left_out), language=None)


def summary(meta: dict[str, Any]) -> str:
    """How many images it has, and of which classes."""
    train, test = (sum(count[part] for count in meta["counts"]) for part in (0, 1))
    text = f"{train + test:,} images: {train:,} to train on, {test:,} to judge by"
    if not meta["classes"]:
        return f"{text}. No folders of classes: methods without labels apply."
    sizes = [f"{c} {a + b:,}" for c, (a, b) in zip(meta["classes"], meta["counts"], strict=True)]
    more = f" and {len(sizes) - CLASSES} more" if len(sizes) > CLASSES else ""
    number = f"{len(sizes)} class{'es' if len(sizes) > 1 else ''}"
    return f"{text}. {number}: {', '.join(sizes[:CLASSES])}{more}."


def _caption(meta: dict[str, Any], row: int) -> str:
    label = meta["labels"][row]
    return meta["classes"][label] if label >= 0 else meta["ids"][row]
