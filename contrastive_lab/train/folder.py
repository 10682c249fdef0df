"""A folder of images, before it is trained on: its classes, and some of its images."""

import contextlib
from pathlib import Path
from typing import Any

import streamlit as st

from contrastive_core.engine import questions
from contrastive_core.engine.images import changed, datasets, values_of
from contrastive_lab import cache, format
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import _, message, ngettext
from contrastive_lab.progress import follow

CLASSES = 12  # that are named with their sizes


def contents(folder: str) -> None:
    """What a training would get of it; a folder that is not there is said to be so at its field."""
    if not is_folder(folder):
        return
    st.header(_("Images"))
    result = cache.result("folder", values_of(folder))
    if result is None:
        task = questions.analysis("folder", values_of(folder))
        follow(task, message("The images"), said=task.failure())  # which `wrong_folder` says at the form
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
    st.caption(format.plain(", ".join(names)) if names else _("Press an image for its file's name."))
    if left_out := result.meta["left_out"]:
        n = result.meta["n_left_out"]
        with st.expander(ngettext("{n} file is left out", "{n} files are left out", n).format(n=f"{n:,}")):
            st.code("\n".join(f"{name}: {reason}" for name, reason in left_out), language=None)


def wrong_folder(folder: str, needs_labels: str, needs_captions: str = "") -> str:
    """Why a folder cannot be trained on, as far as known; `needs_labels`, `needs_captions`: the method, if it does."""
    if not is_folder(folder):
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if Path(folder).expanduser().is_file():
                return _("{folder} is neither a folder of images nor a list of images (.csv).").format(folder=folder)
        return _("There is no folder or list {folder}.").format(folder=folder)
    result = cache.result("folder", values_of(folder))
    if result is None:
        task = questions.analysis("folder", values_of(folder))
        return "" if task.is_running() else task.failure() or ""
    if needs_labels and len(result.meta["classes"]) < 2:
        text = _("{needs_labels} needs at least two classes; this folder has fewer.")
        return text.format(needs_labels=needs_labels)
    if sum(count[0] for count in result.meta["counts"]) < 2:
        return _("One image is too few to compare: a training needs two or more.")
    return wrong_captions(result.meta, needs_captions) if needs_captions else ""


def wrong_captions(meta: dict[str, Any], method: str) -> str:
    """Why a folder's captions cannot be trained on by a method that needs them."""
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
    """Which images have no caption, and what else is odd about captions; "" without captions."""
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


def wrong_batch(folder: str, settings: list[str]) -> str:
    """Why a batch size that was chosen is too large for the folder, as far as is known."""
    sizes = [s.partition("=")[2].strip() for s in settings if s.startswith("batch_size=")]
    size = int(sizes[-1]) if sizes and sizes[-1].isdigit() else 0
    n = training_images(folder) if size and is_folder(folder) else 0
    text = _("A batch of {sizes} is larger than the {n} training images of this folder.")
    return text.format(sizes=f"{size:,}", n=f"{n:,}") if 0 < n < size else ""


def training_images(folder: str) -> int:
    """How many images a folder has for training; 0 while that is not known."""
    result = cache.result("folder", values_of(folder))
    return sum(count[0] for count in result.meta["counts"]) if result is not None else 0


def is_folder(path: str) -> bool:
    """Whether there is a folder, or a list of images, perhaps with the name of its column."""
    try:
        return any(
            place.is_dir() or (place.is_file() and place.suffix.lower() == ".csv")
            for place in (Path(path).expanduser(), Path(path.rpartition("#")[0]).expanduser())
            if str(place) != "."
        )
    except (OSError, ValueError, RuntimeError):  # a NUL byte, or a home that nobody has
        return False


def with_change(values: dict[str, Any]) -> dict[str, Any]:
    """The values of an analysis of `dataset`; a folder that changed makes others of them."""
    data = values["dataset"]
    if datasets.is_files(data):
        return {**values, "changed": changed(data.partition(":")[2])}
    return values


def summary(meta: dict[str, Any]) -> str:
    """How many images it has, of which classes and sizes, how they are split, and what is left out:
    "450 images · 3 classes · 32×32 · 360 train, 90 test · 1 unreadable: notes.png"."""
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
        label = _("{n_left_out} left out: {left_out}{more}")
        parts.append(label.format(n_left_out=f"{meta['n_left_out']:,}", left_out=left_out[0][0], more=more))
    return " · ".join(filter(None, parts))


def classes(meta: dict[str, Any]) -> str:
    """The classes with their sizes; what follows where there are none."""
    if not meta["classes"]:
        if meta["captions"][0]:
            return _("No class folders: use CLIP, or another method without labels.")
        return _("No class folders. Use a method without labels.")
    sizes = [f"{c} {a + b:,}" for c, (a, b) in zip(meta["classes"], meta["counts"], strict=True)]
    named = ", ".join(sizes[:CLASSES])
    if (more := len(sizes) - CLASSES) < 1:
        return named
    template = _("{named} and {more} more classes") if more > 1 else _("{named} and 1 more class")
    return template.format(named=named, more=more)
