"""A folder of images before training: its classes, and some of its images."""

import contextlib
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.data import datasets
from contrastive_core.data.folder_selection import COPY, LEAK, SECONDS, TWO_LABELS, changed, values_of
from contrastive_core.engine import jobs
from contrastive_lab import cache, format
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import _, message, ngettext
from contrastive_lab.progress import follow

CLASSES = 12  # that are named with their sizes


def contents(folder: str) -> None:
    """Draw the contents of a folder; a missing one is reported at its field."""
    if not is_folder(folder):
        return
    st.header(_("Images"))
    result = cache.result("folder", values_of(folder))
    if result is None:
        job = jobs.analysis("folder", values_of(folder))
        follow(job, message("The images"), said=job.failure())  # which `wrong_folder` says at the form
        return
    st.markdown(f"**{format.plain(summary(result.meta))}**")
    st.caption(format.plain(classes(result.meta)))
    if remarks := [*result.meta["remarks"], *filter(None, [about_captions(result.meta)])]:
        st.caption(format.plain(" ".join(remarks)))
    of = result.meta["classes"]
    captions = [of[k] if k >= 0 else name for k, name in zip(result.meta["labels"], result.meta["ids"], strict=True)]
    key, title = f"folder-{cache.digest(folder)}", _("images of the folder")
    picked = draw_gallery(result.arrays["images"], captions, size=64, title=title, key=key)
    names = [result.meta["ids"][row] for row in picked]
    st.caption(format.plain(", ".join(names)) if names else _("Click an image to see its file name."))
    if same := result.meta["same"]:
        with st.expander(said_of_copies(result.meta["same_counts"])):
            st.code("\n".join(f"{first} = {other}" for _kind, first, other in same), language=None)
    if (compared := result.meta["compared"]) < (total := sum(map(sum, result.meta["counts"]))):
        text = _(
            "The search for equal pictures and damaged files stopped after {seconds} s, at {compared} of {total} "
            "images. The list of near-duplicates on Samples has all of them."
        )
        st.caption(text.format(seconds=f"{SECONDS:.0f}", compared=f"{compared:,}", total=f"{total:,}"))
    if left_out := result.meta["left_out"]:
        n = result.meta["n_left_out"]
        with st.expander(ngettext("{n} file is left out", "{n} files are left out", n).format(n=f"{n:,}")):
            st.code("\n".join(f"{name}: {reason}" for name, reason in left_out), language=None)


def said_of_copies(counts: dict[str, int]) -> str:
    """Describe files with identical pixels: copies, copies with two labels, copies in both splits."""
    kinds = {COPY: _("copies: {n}"), TWO_LABELS: _("with two labels: {n}"), LEAK: _("in both splits: {n}")}
    named = [text.format(n=f"{counts[kind]:,}") for kind, text in kinds.items() if counts.get(kind)]
    return _("The same picture twice: {named}").format(named=" · ".join(named))


def wrong_folder(folder: str, needs_captions: str = "") -> str:
    """Return the reason why a folder cannot be read, or has no captions for the method that `needs_captions`; "" if it
    can."""
    if not is_folder(folder):
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if Path(folder).expanduser().is_file():
                return _("{folder} is neither a folder of images nor a list of images (.csv).").format(folder=folder)
        return _("There is no folder or list {folder}.").format(folder=folder)
    result = cache.result("folder", values_of(folder))
    if result is None:
        job = jobs.analysis("folder", values_of(folder))
        return "" if job.is_running() else job.failure() or ""
    return wrong_captions(result.meta, needs_captions) if needs_captions else ""


def wrong_captions(meta: dict[str, Any], method: str) -> str:
    """Return the reason why a method cannot train on a folder's captions."""
    if problem := meta["caption_problem"]:
        return str(problem)
    if not meta["captions"][0]:
        return _(
            "{method} needs captions: choose shapes, or a folder of images with captions.csv (columns file, caption)."
        ).format(method=method)
    if meta["captions"][2] < 2:
        text = _("captions.csv has captions of {n} training images; two or more are needed.")
        return text.format(n=meta["captions"][2])
    return ""


def about_captions(meta: dict[str, Any]) -> str:
    """Describe images without a caption, and other faults of captions; "" without captions."""
    if problem := meta["caption_problem"]:
        return str(problem)
    captions, _images, of_training = meta["captions"]
    lacking = sum(count[0] for count in meta["counts"]) - of_training
    text = ngettext(
        "{n} training image has no caption; a method with captions leaves it out.",
        "{n} training images have no caption; a method with captions leaves them out.",
        lacking,
    )
    said = [text.format(n=f"{lacking:,}")] if captions and lacking > 0 else []
    return " ".join([*said, *filter(None, [meta["caption_remark"]])])


def is_folder(path: str) -> bool:
    """Return whether the path is a folder or a list of images, perhaps with the name of its column."""
    try:
        return any(
            place.is_dir() or (place.is_file() and place.suffix.lower() == ".csv")
            for place in (Path(path).expanduser(), Path(path.rpartition("#")[0]).expanduser())
            if str(place) != "."
        )
    except (OSError, ValueError, RuntimeError):  # a NUL byte, or a home that nobody has
        return False


def with_change(values: dict[str, Any]) -> dict[str, Any]:
    """Return an analysis's values for `dataset`, extended so that a changed folder gives other values."""
    data = values["dataset"]
    if datasets.is_files(data):
        return {**values, "changed": changed(data.partition(":")[2])}
    return values


def summary(meta: dict[str, Any]) -> str:
    """Describe the number of images, their classes and sizes, the split, and files left out: "450 images · 3 classes ·
    32×32 · 360 train, 90 test · 1 unreadable: notes.png"."""
    train, test = (sum(count[part] for count in meta["counts"]) for part in (0, 1))
    n, left_out = len(meta["classes"]), meta["left_out"]
    parts = [
        ngettext("{count} image", "{count} images", train + test).format(count=f"{train + test:,}"),
        ngettext("{n} class", "{n} classes", n).format(n=n) if n else _("no classes"),
    ]
    parts.append(" to ".join(f"{width}×{height}" for width, height in meta.get("sizes", ())))
    parts.append(_("{channels} channels").format(channels=channels) if (channels := meta.get("channels")) else "")
    parts.append(_("{train} train, {test} test").format(train=f"{train:,}", test=f"{test:,}"))
    if meta["captions"][0]:
        captions, images, _of_training = meta["captions"]
        label = ngettext("{captions} caption for {images} images", "{captions} captions for {images} images", captions)
        parts.append(label.format(captions=f"{captions:,}", images=f"{images:,}"))
    if left_out:
        more = ", …" if meta["n_left_out"] > 1 else ""
        label = _("{count} left out: {example}{more}")
        parts.append(label.format(count=f"{meta['n_left_out']:,}", example=left_out[0][0], more=more))
    return " · ".join(filter(None, parts))


def classes(meta: dict[str, Any]) -> str:
    """Describe the classes with their training and test images, or the consequences of having none."""
    if not meta["classes"]:
        if meta["captions"][0]:
            return _("No class folders: use CLIP, or another method without labels.")
        return _("No class folders. Use a method without labels.")
    sizes = [f"{c} {a:,} + {b:,}" for c, (a, b) in zip(meta["classes"], meta["counts"], strict=True)]
    named = ", ".join(sizes[:CLASSES])
    if (more := len(sizes) - CLASSES) < 1:
        return named
    template = _("{named} and {more} more classes") if more > 1 else _("{named} and 1 more class")
    return template.format(named=named, more=more)
