"""The data of a training: a set by name, or a folder of images with its classes, faults and some of its images."""

import contextlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.json_files import JsonObject
from contrastive_core.base.messages import printable
from contrastive_core.base.storage import data_home
from contrastive_core.data import datasets, image_listings, named_sets
from contrastive_core.data.dataset import KNOWN, SMALL, DatasetInfo
from contrastive_core.data.folder_selection import (
    COPY,
    LEAK,
    MOST_BYTES,
    MOST_FILES,
    SECONDS,
    TWO_LABELS,
    changed,
    count_images,
    name_of,
    parts_of,
    save_uploads,
    subfolders,
    values_of,
)
from contrastive_core.engine import jobs
from contrastive_lab import cache, format, locale, query_params
from contrastive_lab.components.gallery import draw_gallery
from contrastive_lab.locale import N_, _, message, ngettext
from contrastive_lab.path_input import path_input, recent_folders
from contrastive_lab.progress import follow

FOLDER = N_("folder of images…")
NO_CLASSES = N_("none: no classes")
CLASSES = 12  # that are named with their sizes
ROUND = "drops"  # counts the copied folders, so that the next drop finds an empty field
CHOSEN, LEFT_OUT = "chosen folder", "dropped and left out"  # of the session: its path; a copy's path and its files
BROWSED = "browsed folder"  # of the session, while the browser is open
RECENT = 3  # folders that the browser offers
NAMED = 50  # files that are left out, by name


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


# --- its choice ---


def choose_data(subject: DeltaGenerator) -> Data:
    """Draw the choice of a data set by name, with its download if necessary, or of a folder of images. Args: subject:
    container of the choice itself."""
    names = ["digits", "shapes", *named_sets.SIZES, FOLDER]
    name = query_params.one_of(
        subject.selectbox, _("Data"), names, name="data", text=lambda n: "folder" if n == FOLDER else n, width=200
    )
    if name == FOLDER:
        return Data(_choose_folder())
    # Its files are here, or its images already decoded.
    if name not in named_sets.SIZES or named_sets.is_there(name, None) or datasets.is_made(name, "train"):
        return Data(name)
    size = _("{sizes} MB").format(sizes=f"{named_sets.SIZES[name]:,}")
    fetch = st.checkbox(
        _("Fetch {name}: {size}").format(name=name, size=size), help=_("It is not on this machine yet.")
    )
    return Data(name, fetch, True)


def _choose_folder() -> str:
    """Draw the field of the path, the files that a drop left out, and the column of a list's classes; return the data
    set's name, "" without a path."""
    if folder := st.session_state.pop(CHOSEN, None):
        query_params.choose("path-folder", folder)
    path = path_input(
        _("Folder (one folder per class, or images only)"),
        "folder",
        placeholder="/path/to/images",
        help=_("Or the path of a list of images (.csv with the columns file, label and split)."),
    )
    browse(path)
    if not path:
        return ""
    copied, files = st.session_state.get(LEFT_OUT, ("", []))
    if copied == path and files:
        with st.expander(_("{files} dropped files were not copied").format(files=f"{len(files):,}")):
            st.code("\n".join(f"{name}: {reason}" for name, reason in files[:NAMED]), language=None)
            if len(files) > NAMED:
                st.caption(_("… and {files} more").format(files=f"{len(files) - NAMED:,}"))
    name, columns = name_of(path), list[str]()
    if name.startswith("csv:"):
        place, column = image_listings.list_and_column(path)
        with contextlib.suppress(BadSetting):  # the folder's contents say why it cannot be read
            columns = [] if column else image_listings.columns_of(place)
    if columns in ([], [image_listings.LABEL]):
        return name
    usual = image_listings.LABEL if image_listings.LABEL in columns else NO_CLASSES
    chosen = st.selectbox(
        _("Classes are in the column"),
        [usual, *(c for c in columns if c != usual)],
        key="train-label-column",
        format_func=lambda c: locale.text(c) if c == NO_CLASSES else c,  # else a name of the file's
    )
    return name if chosen == usual else f"{name}#{chosen}"


def browse(typed: str) -> None:
    """Draw a button that opens a folder browser, which fills the field of the path."""
    place: Path | None = st.session_state.get(BROWSED)

    def go(to: Path | None, chosen: str = "") -> None:
        st.session_state[BROWSED], st.session_state[CHOSEN] = to, chosen

    if place is None:
        start = Path(typed).expanduser().absolute() if is_folder(typed) else Path.home()
        start = start if start.is_dir() else start.parent  # of a list
        st.button(_("Browse…"), "browse", on_click=go, args=(start,), icon=":material/folder_open:")
        return
    st.button(_("Close the list"), "browse", on_click=go, args=(None,), icon=":material/folder_open:")
    with st.container(border=True, gap="small"):
        st.markdown(f"**{format.plain(printable(place))}**")
        row, up = st.container(horizontal=True), place.parent
        row.button(_("Up"), "browse-up", on_click=go, args=(up,), icon=":material/arrow_upward:", disabled=up == place)
        row.button(_("Home"), "browse-home", on_click=go, args=(Path.home(),), icon=":material/home:")
        for path in [p for p in recent_folders() if p != place][:RECENT]:
            name, key = format.plain(printable(path.name)), f"recent-{cache.digest(str(path))}"
            row.button(name, key, printable(path), on_click=go, args=(path,), icon=":material/history:")
        try:
            inside = subfolders(place)
        except OSError as error:
            st.error(format.plain(_("This folder cannot be read: {reason}").format(reason=error.strerror)))
            return
        with st.container(height=240, gap=None):
            for path, found in inside.items():
                name, key = format.plain(printable(path.name)), f"folder-{cache.digest(str(path))}"
                label = f"{name} · {count_text(*found)}"
                st.button(label, key, on_click=go, args=(path,), icon=":material/folder:", type="tertiary")
            if not inside:
                st.caption(_("No folders in here."))
        found = count_images(place)
        label = _("Use this folder: {pictures}").format(pictures=count_text(*found))
        st.button(label, "browse-use", on_click=go, args=(None, str(place)), type="primary", disabled=not found[0])


def count_text(count: int, is_exact: bool) -> str:
    """Describe the result of `count_images`."""
    if not count:
        return _("no images") if is_exact else _("not searched")
    if not is_exact:
        return _("{count} or more images").format(count=f"{count:,}")
    return ngettext("{count} image", "{count} images", count).format(count=f"{count:,}")


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
    counts = Counter(parts[-2] for file in files if len(parts := parts_of(file.name)) > 1)
    listed = ", ".join([*(f"{name} {n:,}" for name, n in counts.most_common(6)), *(["…"] if len(counts) > 6 else [])])
    template = ngettext("{names} file", "{names} files", len(files))
    if counts:
        template = _("{names} files in {counts} folders: {listed}")
    if len(counts) == 1:
        template = ngettext("{names} file in a folder: {listed}", "{names} files in a folder: {listed}", len(files))
    said = template.format(names=f"{len(files):,}", counts=len(counts), listed=listed)
    st.markdown(f"**{format.plain(said)}**")
    if not st.button(_("Use these images"), type="primary", icon=":material/check:", key="drop-use"):
        return
    bar = st.progress(0.0, _("Copying them…"))
    try:
        uploads = [(file.name, file.getbuffer()) for file in files]
        folder, without = save_uploads(uploads, lambda share: bar.progress(share, _("Copying them…")))
    except (BadSetting, OSError) as error:
        bar.empty()
        st.error(format.plain(error))
        return
    st.session_state[CHOSEN], st.session_state[LEFT_OUT] = str(folder), (str(folder), without)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1
    st.rerun()


# --- what a folder holds: the answer `folder`, a `FolderPreview` ---


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
    meta = result.meta
    st.markdown(f"**{format.plain(summary(meta))}**")
    st.caption(format.plain(classes(meta)))
    if meta["remarks"]:
        st.caption(format.plain(" ".join(meta["remarks"])))
    of = meta["classes"]
    captions = [of[k] if k >= 0 else name for k, name in zip(meta["labels"], meta["ids"], strict=True)]
    key, title = f"folder-{cache.digest(folder)}", _("images of the folder")
    picked = draw_gallery(result.arrays["images"], captions, size=64, title=title, key=key)
    names = [meta["ids"][row] for row in picked]
    st.caption(format.plain(", ".join(names)) if names else _("Click an image to see its file name."))
    if meta["same"]:
        kinds = {COPY: _("copies: {n}"), TWO_LABELS: _("with two labels: {n}"), LEAK: _("in both splits: {n}")}
        counts = meta["same_counts"]
        named = [text.format(n=f"{counts[kind]:,}") for kind, text in kinds.items() if counts.get(kind)]
        with st.expander(_("The same picture twice: {named}").format(named=" · ".join(named))):
            st.code("\n".join(f"{first} = {other}" for _kind, first, other in meta["same"]), language=None)
    if (compared := meta["compared"]) < (total := sum(map(sum, meta["counts"]))):
        text = _(
            "The search for equal pictures and damaged files stopped after {seconds} s, at {compared} of {total} "
            "images. The list of near-duplicates on Samples has all of them."
        )
        st.caption(text.format(seconds=f"{SECONDS:.0f}", compared=f"{compared:,}", total=f"{total:,}"))
    if n := meta["n_left_out"]:
        with st.expander(ngettext("{n} file is left out", "{n} files are left out", n).format(n=f"{n:,}")):
            st.code("\n".join(f"{name}: {reason}" for name, reason in meta["left_out"]), language=None)


def summary(meta: JsonObject) -> str:
    """Describe the number of images, their classes and sizes, the split, and files left out: "450 images · 3 classes ·
    32×32 · 360 train, 90 test · 1 unreadable: notes.png"."""
    train, test = (sum(count[part] for count in meta["counts"]) for part in (0, 1))
    n = len(meta["classes"])
    parts = [
        ngettext("{count} image", "{count} images", train + test).format(count=f"{train + test:,}"),
        ngettext("{n} class", "{n} classes", n).format(n=n) if n else _("no classes"),
        " to ".join(f"{width}×{height}" for width, height in meta["sizes"]),
        _("{channels} channels").format(channels=meta["channels"]) if meta["channels"] not in (0, 1, 3) else "",
    ]
    parts.append(_("{train} train, {test} test").format(train=f"{train:,}", test=f"{test:,}"))
    if meta["captions"][0]:
        captions, images, _of_training = meta["captions"]
        label = ngettext("{captions} caption for {images} images", "{captions} captions for {images} images", captions)
        parts.append(label.format(captions=f"{captions:,}", images=f"{images:,}"))
    if n_left_out := meta["n_left_out"]:
        label, more = _("{count} left out: {example}{more}"), ", …" if n_left_out > 1 else ""
        parts.append(label.format(count=f"{n_left_out:,}", example=meta["left_out"][0][0], more=more))
    return " · ".join(filter(None, parts))


def classes(meta: JsonObject) -> str:
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


def wrong_folder(folder: str, needs_captions: str = "") -> str:
    """Return the reason why a folder cannot be read, or has no captions for the method that `needs_captions`; "" if it
    can, or while it is being read."""
    if not is_folder(folder):
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if Path(folder).expanduser().is_file():
                return _("{folder} is neither a folder of images nor a list of images (.csv).").format(folder=folder)
        return _("There is no folder or list {folder}.").format(folder=folder)
    result = cache.result("folder", values_of(folder))
    if result is None:
        job = jobs.analysis("folder", values_of(folder))
        return "" if job.is_running() else job.failure() or ""
    captions, _images, of_training = result.meta["captions"]
    if not needs_captions or result.meta["caption_problem"]:
        return str(result.meta["caption_problem"]) if needs_captions else ""
    if not captions:
        return _(
            "{method} needs captions: choose shapes, or a folder of images with captions.csv (columns file, caption)."
        ).format(method=needs_captions)
    text = _("captions.csv has captions of {n} training images; two or more are needed.")
    return text.format(n=of_training) if of_training < 2 else ""


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


def facts_of(data: Data) -> DatasetInfo | None:
    """Return the facts that defaults depend on; None while a folder's images are being counted."""
    if not data.files:
        return KNOWN.get(data.name)
    if (preview := cache.result("folder", values_of(data.files))) is None:
        return None
    meta, images = preview.meta, preview.arrays["images"]
    is_color = len(images) and (images[:, :1] != images).any()  # in some images of a folder
    channels, side = meta["channels"] or (3 if is_color else 1), meta["side"] or SMALL
    classes = sum(train > 0 for train, _test in meta["counts"]) if meta["classes"] else 0
    n_train = sum(train for train, _test in meta["counts"])
    return DatasetInfo((channels, side, side), n_train, classes, meta["captions"][2] > 0)


def with_change(data: str, **values: object) -> dict[str, object]:
    """Return an analysis's values for a data set; a changed folder gives other values."""
    values = {"dataset": data, **values}
    return values | {"changed": changed(data.partition(":")[2])} if datasets.is_files(data) else values
