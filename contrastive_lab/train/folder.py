"""A folder of images before training: its classes, some of its images, and two ways to choose it besides its path: a
folder dialog, and a field to drop one on."""

import contextlib
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

import streamlit as st

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.messages import printable
from contrastive_core.base.storage import data_home
from contrastive_core.data import datasets, image_listings
from contrastive_core.data.dataset import KNOWN, SMALL, DatasetInfo
from contrastive_core.data.folder_selection import (
    COPY,
    LEAK,
    MOST_BYTES,
    MOST_FILES,
    SECONDS,
    TWO_LABELS,
    changed,
    parts_of,
    pictures_in,
    save_uploads,
    subfolders,
    values_of,
)
from contrastive_core.engine import jobs
from contrastive_lab import cache, format, locale, path_input, query_params
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import N_, _, message, ngettext
from contrastive_lab.progress import follow

NO_CLASSES = N_("none: no classes")
CLASSES = 12  # that are named with their sizes
OPEN, PLACE = "browsing", "browsed folder"
RECENT = 3
ROUND = "drops"  # counts what was taken over, so that the next drop finds an empty field
CHOSEN, LEFT_OUT = "dropped folder", "dropped and left out"
NAMED = 50  # files that are left out, by name


class FolderContents(TypedDict):
    """The classes of a folder or a list of images, their sizes, and faults: a `FolderPreview` without its images."""

    ids: list[str]  # of the shown images
    labels: list[int]  # of the shown images; -1 without classes
    classes: list[str]
    counts: list[tuple[int, int]]  # (train, test) of each class; of all images without classes
    left_out: list[tuple[str, str]]  # the first ids and reasons
    n_left_out: int
    side: int
    sizes: list[tuple[int, int]]
    remarks: list[str]
    same: list[tuple[str, str, str]]  # the first kinds and pairs of equal pictures
    same_counts: dict[str, int]  # by kind
    compared: int
    channels: int
    captions: tuple[int, int, int]  # numbers of captions, captioned images and captioned training images
    caption_remark: str
    caption_problem: str


@dataclass(frozen=True)
class Data:
    """The chosen data. `name` as on the command line; "" while a folder is chosen but none is named."""

    name: str
    download: bool = False
    fetch: bool = False  # it is not on this machine

    @property
    def files(self) -> str:
        """The path of the images, if a folder or a list is chosen."""
        return self.name.partition(":")[2] if datasets.is_files(self.name) else ""


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
    meta = cast(FolderContents, result.meta)
    st.markdown(f"**{format.plain(summary(meta))}**")
    st.caption(format.plain(classes(meta)))
    if remarks := [*meta["remarks"], *filter(None, [about_captions(meta)])]:
        st.caption(format.plain(" ".join(remarks)))
    of = meta["classes"]
    captions = [of[k] if k >= 0 else name for k, name in zip(meta["labels"], meta["ids"], strict=True)]
    key, title = f"folder-{cache.digest(folder)}", _("images of the folder")
    picked = draw_gallery(result.arrays["images"], captions, size=64, title=title, key=key)
    names = [meta["ids"][row] for row in picked]
    st.caption(format.plain(", ".join(names)) if names else _("Click an image to see its file name."))
    if same := meta["same"]:
        with st.expander(said_of_copies(meta["same_counts"])):
            st.code("\n".join(f"{first} = {other}" for _kind, first, other in same), language=None)
    if (compared := meta["compared"]) < (total := sum(map(sum, meta["counts"]))):
        text = _(
            "The search for equal pictures and damaged files stopped after {seconds} s, at {compared} of {total} "
            "images. The list of near-duplicates on Samples has all of them."
        )
        st.caption(text.format(seconds=f"{SECONDS:.0f}", compared=f"{compared:,}", total=f"{total:,}"))
    if left_out := meta["left_out"]:
        n = meta["n_left_out"]
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
    return wrong_captions(cast(FolderContents, result.meta), needs_captions) if needs_captions else ""


def wrong_captions(meta: FolderContents, method: str) -> str:
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


def about_captions(meta: FolderContents) -> str:
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


def with_change(data: str, **values: object) -> dict[str, object]:
    """Return an analysis's values for a data set; a changed folder gives other values."""
    values = {"dataset": data, **values}
    return values | {"changed": changed(data.partition(":")[2])} if datasets.is_files(data) else values


def summary(meta: FolderContents) -> str:
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


def classes(meta: FolderContents) -> str:
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


def facts_of(data: Data) -> DatasetInfo | None:
    """Return the facts that defaults depend on; None while a folder's images are being counted."""
    if not data.files:
        return KNOWN.get(data.name)
    if (preview := cache.result("folder", values_of(data.files))) is None:
        return None
    meta, images = cast(FolderContents, preview.meta), preview.arrays["images"]
    is_color = len(images) and (images[:, :1] != images).any()  # in some images of a folder
    channels, side = int(meta.get("channels") or 0) or 3 * bool(is_color), int(meta.get("side") or SMALL)
    classes = sum(train > 0 for train, _test in meta["counts"]) if meta["classes"] else 0
    n_train = sum(train for train, _test in meta["counts"])
    return DatasetInfo((channels, side, side), n_train, classes, meta["captions"][2] > 0)


def with_label(name: str) -> str:
    """Draw the choice of the class column for a list of images; return the list's name with it."""
    path, column = image_listings.list_and_column(name.removeprefix("csv:"))
    if not name.startswith("csv:") or column:
        return name
    try:
        columns = image_listings.columns_of(path)
    except BadSetting:  # what the folder holds says so
        return name
    if columns in ([], [image_listings.LABEL]):
        return name
    usual = image_listings.LABEL if image_listings.LABEL in columns else NO_CLASSES
    options = [usual, *(c for c in columns if c != usual)]
    chosen = st.selectbox(
        _("Classes are in the column"),
        options,
        key="train-label-column",
        format_func=lambda c: locale.text(c) if c == NO_CLASSES else c,  # else a name of the file's
    )
    return name if chosen == usual else f"{name}#{chosen}"


# --- the folder dialog ---


def browser(key: str) -> None:
    """Draw a button that opens the dialog; `key` is that of the field to fill."""
    is_open = bool(st.session_state.get(OPEN))
    label = _("Close the list") if is_open else _("Browse…")

    def toggle() -> None:
        st.session_state[OPEN] = not st.session_state.get(OPEN)
        typed = Path(str(st.session_state.get(key) or "")).expanduser()
        if typed.is_absolute() and _is_readable(typed):
            st.session_state[PLACE] = str(typed)

    st.button(label, key="browse", on_click=toggle, icon=":material/folder_open:")
    if is_open:
        with st.container(border=True, gap="small"):
            place = Path(st.session_state.get(PLACE) or Path.home())
            _dialog(place if _is_readable(place) else Path.home(), key)


def _dialog(place: Path, field: str) -> None:
    st.markdown(f"**{format.plain(printable(place))}**")
    row = st.container(horizontal=True)
    up, is_top = place.parent, place == place.parent
    row.button(_("Up"), "browse-up", on_click=_go, args=(up,), icon=":material/arrow_upward:", disabled=is_top)
    row.button(_("Home"), "browse-home", on_click=_go, args=(Path.home(),), icon=":material/home:")
    for path in [p for p in path_input.folders() if p != place][:RECENT]:
        name, key = format.plain(printable(path.name)), f"recent-{cache.digest(str(path))}"
        row.button(name, key, printable(path), on_click=_go, args=(path,), icon=":material/history:")
    try:
        folders = subfolders(place)
    except OSError as error:
        st.error(format.plain(_("This folder cannot be read: {reason}").format(reason=error.strerror)))
        return
    with st.container(height=240, gap=None):
        for one in folders:
            label = f"{format.plain(printable(one.name))} · {_pictures(one.pictures, one.is_exact)}"
            key = f"folder-{cache.digest(str(one.path))}"
            st.button(label, key, on_click=_go, args=(one.path,), icon=":material/folder:", type="tertiary")
        if not folders:
            st.caption(_("No folders in here."))
    count, is_exact = pictures_in(place)
    label = _("Use this folder: {pictures}").format(pictures=_pictures(count, is_exact))
    st.button(label, "browse-use", on_click=_use, args=(place, field), type="primary", disabled=not count)


def _pictures(count: int, is_exact: bool) -> str:
    if not count:
        return _("no images") if is_exact else _("not searched")
    if not is_exact:
        return _("{count} or more images").format(count=f"{count:,}")
    return ngettext("{count} image", "{count} images", count).format(count=f"{count:,}")


def _is_readable(path: Path) -> bool:
    try:
        return path.is_dir() and os.access(path, os.R_OK)
    except (OSError, ValueError):
        return False


def _go(place: Path) -> None:
    st.session_state[PLACE] = str(place)


def _use(place: Path, key: str) -> None:
    query_params.choose(key, str(place))
    st.session_state[OPEN] = False


# --- a folder that is dropped ---


def drop_zone() -> None:
    """Draw the drop field, then a summary of its files and a button that copies them."""
    help = _("The folder contains one folder per class, or images only. Your files are not changed.")
    label, key = _("or drop a folder of images here"), f"drop-{st.session_state.get(ROUND, 0)}"
    files = st.file_uploader(label, accept_multiple_files="directory", key=key, help=help)
    text = _(
        "At most {most_files} files and {most_bytes} MB. They are copied to {data_home}. A folder given by its path "
        "is not copied."
    )
    most, home = (f"{MOST_FILES:,}", f"{MOST_BYTES / 1e6:,.0f}"), format.plain(data_home() / "dropped")
    st.caption(text.format(most_files=most[0], most_bytes=most[1], data_home=home))
    if not files:
        return
    st.markdown(f"**{format.plain(_dropped([f.name for f in files]))}**")
    if not st.button(_("Use these images"), type="primary", icon=":material/check:", key="drop-use"):
        return
    bar = st.progress(0.0, _("Copying them…"))

    def report(share: float) -> None:
        bar.progress(share, _("Copying them…"))

    try:
        folder, without = save_uploads(files, report)
    except (BadSetting, OSError) as error:
        bar.empty()
        st.error(format.plain(error))
        return
    st.session_state[CHOSEN], st.session_state[LEFT_OUT] = str(folder), (str(folder), without)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    st.rerun()


def take_over_drop(key: str) -> None:
    """Write the copied folder into the field with this key, before it is drawn."""
    if folder := st.session_state.pop(CHOSEN, None):
        query_params.choose(key, folder)


def show_left_out(folder: str) -> None:
    """Draw the files of a dropped folder that were not copied, with the reasons."""
    of, files = st.session_state.get(LEFT_OUT, ("", []))
    if of != folder or not files:
        return
    with st.expander(_("{files} dropped files were not copied").format(files=f"{len(files):,}")):
        lines = [f"{name}: {reason}" for name, reason in files[:NAMED]]
        st.code("\n".join(lines), language=None)
        if len(files) > NAMED:
            st.caption(_("… and {files} more").format(files=f"{len(files) - NAMED:,}"))


def _dropped(names: list[str]) -> str:
    """Describe the number of files and their folders."""
    counts = Counter(parts[-2] for name in names if len(parts := parts_of(name)) > 1)
    listed = ", ".join([*(f"{name} {n:,}" for name, n in counts.most_common(6)), *(["…"] if len(counts) > 6 else [])])
    template = ngettext("{names} file", "{names} files", len(names))
    if counts:
        template = _("{names} files in {counts} folders: {listed}")
    if len(counts) == 1:
        template = ngettext("{names} file in a folder: {listed}", "{names} files in a folder: {listed}", len(names))
    return template.format(names=f"{len(names):,}", counts=len(counts), listed=listed)
