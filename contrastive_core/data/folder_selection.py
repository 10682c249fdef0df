"""A folder of images before training: its classes, faults and some of its images, before decoding; the subfolders of a
folder browser; and uploads.

Uploaded images are checked and saved as a folder that is an ordinary data set. The folders in their paths become the
classes. Nothing is written outside of the new folder, which gets its name once it is complete."""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np

from contrastive_core.base import storage
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.messages import N_, message, printable
from contrastive_core.base.storage import FileCache, data_home
from contrastive_core.data import datasets, image_cache, image_decoding, image_listings
from contrastive_core.data.captions import CAPTIONS_FILE, captions_for, read_captions
from contrastive_core.data.image_decoding import ENDINGS, DecodingPool, processes
from contrastive_core.data.image_listings import ImageFile, Listing

SHOWN = 60  # images
HEADS = 5000  # maximum files whose headers are read
SIDE = 96  # side of each in pixels
SECONDS = 6.0  # seconds to decode files in search of copies and damage
LAYOUT = 8  # version of the split rules; a change invalidates earlier previews
LISTED = 100  # maximum files that are left out, and pairs of equal pictures, by name
COPY, TWO_LABELS, LEAK = "copy", "two labels", "leak"


@dataclass(frozen=True, eq=False)
class FolderPreview:
    """A preview of a folder. `images` (k, 3, side, side) uint8 are at most SHOWN files, with the id and the class
    (−1: none) of each; `counts` are the readable files of the training and the test split by class. Lists of files
    hold at most LISTED."""

    images: np.ndarray
    ids: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]
    counts: tuple[tuple[int, int], ...]  # (train, test) of each class; of all images without classes
    left_out: tuple[tuple[str, str], ...]  # ids and reasons of links and unreadable files
    n_left_out: int
    side: int  # the median of the training images' shorter sides, in pixels
    sizes: tuple[tuple[int, int], ...]  # (width, height) of the smallest and the largest; of all, or of the shown ones
    remarks: tuple[str, ...]  # how the splits were found, which endings are left out, faults of captions
    same: tuple[tuple[str, str, str], ...]  # COPY, TWO_LABELS or LEAK, and two files with equal pixels
    same_counts: dict[str, int]  # by kind
    channels: int  # of arrays; 0 of pictures
    compared: int  # files decoded within SECONDS; copies are found among these only
    captions: tuple[int, int, int]  # numbers of captions, captioned images and captioned training images
    caption_problem: str  # why captions cannot be read


def folder_preview(path: str, limit: int = SHOWN) -> FolderPreview:
    """Inspect a folder or a list of images. Raises ValueError for other paths."""
    name = name_of(path)
    train, test = datasets.listings_of(name).values()
    datasets.check_not_empty(name, train, "train")
    images, shown, sizes, unreadable = [], [], set(), []
    few, every = _some(train, limit), [*train.files, *test.files]
    first, pixels, end = {*few}, dict[str, bytes](), time.monotonic() + SECONDS
    for file in dict.fromkeys([*few, *(every if len(every) - len(few) <= HEADS else ())]):
        try:
            if file in first or time.monotonic() < end:
                image = image_decoding.decode_image(file.path, SIDE, channels=3)[0]
                pixels[file.filename] = hashlib.sha256(image.tobytes()).digest()
                if file in first:
                    images.append(image)
                    shown.append(file)
            sizes.add(image_decoding.read_header(file.path)[:2])
        except Exception as error:  # Pillow raises many errors for damaged files
            unreadable.append((file, image_decoding.read_error(error)))
    if unreadable and len(unreadable) == len(every):
        values = {"folder": printable(path), "n": len(every), "first": unreadable[0][0].id, "reason": unreadable[0][1]}
        raise BadSetting("none of the {n} images in {folder} can be read; for example {first}: {reason}", **values)
    bad = {file.path for file, _ in unreadable}  # ids are of a split
    counted = [Counter(f.label for f in part.files if f.path not in bad) for part in (train, test)]
    left_out = [*train.skipped, *((file.id, reason) for file, reason in unreadable)]
    captions, remarks, problem = _captions(name, train, test, counted[0].total())
    in_order = sorted(sizes, key=lambda size: (size[0] * size[1], size))
    same = list(_same(train, test, pixels))
    are_arrays = Path(train.files[0].filename).suffix.lower() in image_listings.ARRAYS
    return FolderPreview(
        images=np.stack(images) if images else np.zeros((0, 3, SIDE, SIDE), np.uint8),
        ids=tuple(f.id for f in shown),
        labels=tuple(f.label for f in shown),
        classes=train.classes,
        counts=tuple((counted[0][k], counted[1][k]) for k in (range(len(train.classes)) if train.classes else (-1,))),
        left_out=tuple(left_out[:LISTED]),
        n_left_out=len(left_out),
        side=image_cache.median_side(train.files),
        sizes=tuple(dict.fromkeys(in_order[:1] + in_order[-1:])),
        remarks=(*image_listings.remarks(train, test), *remarks),
        same=tuple(same[:LISTED]),
        same_counts=Counter(kind for kind, *_ in same),
        channels=image_cache.common_channels(train.files[:HEADS]) if are_arrays else 0,
        compared=len(pixels),
        captions=captions,
        caption_problem=problem,
    )


def _same(train: Listing, test: Listing, pixels: dict[str, bytes]) -> Iterator[tuple[str, str, str]]:
    """Yield each file whose pixels equal those of an earlier file, training files first."""
    seen: dict[bytes, tuple[str, ImageFile]] = {}
    for split, listing in (("train", train), ("test", test)):
        for file in listing.files:
            if (digest := pixels.get(file.filename)) is None:
                continue
            of, before = seen.setdefault(digest, (split, file))
            if before is not file:
                kind = LEAK if of != split else COPY if before.label == file.label else TWO_LABELS
                yield kind, f"{of}: {before.id}", f"{split}: {file.id}"


def _captions(name: str, train: Listing, test: Listing, n_train: int) -> tuple[tuple[int, int, int], list[str], str]:
    """Return the counts of captions, remarks on them, and why they cannot be read ("": they can, or there are none)."""
    path = Path(name.partition(":")[2]).expanduser() / CAPTIONS_FILE
    if not name.startswith("folder:") or not path.exists():
        return (0, 0, 0), [], ""
    try:
        file = read_captions(path)
        parts = {"train": train, "test": test}
        of = [captions_for(file, [f.id for f in part.files], split) for split, part in parts.items()]
    except BadSetting as error:
        return (0, 0, 0), [str(error)], str(error)
    n, captioned = sum(len(each.texts) for each in of), [len(np.unique(each.image)) for each in of]
    remarks = list(file.remarks)
    if n and (lacking := n_train - captioned[0]) > 0:
        text = N_("Training images without a caption: {n}. A method with captions leaves them out.")
        remarks.insert(0, message(text, n=f"{lacking:,}"))
    return (n, sum(captioned), captioned[0]), remarks, ""


def name_of(path: str) -> str:
    """Return the data set name for the path of a folder (`folder:PATH`) or of a list of images (`csv:PATH`)."""
    is_list = path.partition("#")[0].lower().endswith(".csv")
    return f"csv:{path}" if is_list and not os.path.isdir(os.path.expanduser(path)) else f"folder:{path}"


def values_of(folder: str) -> dict[str, str | int | list[int]]:
    """Return the request for the analysis `folder`, which changes when the folder changes."""
    return {"path": folder, "changed": changed(folder), "layout": LAYOUT}


def changed(folder: str) -> list[int]:
    """Return modification times of a folder, its subfolders and those of its splits, to detect changed files."""
    times: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        root = os.path.expanduser(folder)
        if not os.path.exists(root):  # a list and one of its columns
            root = root.rpartition("#")[0]
        times.append(os.stat(root).st_mtime_ns)
        if os.path.exists(captions := os.path.join(root, CAPTIONS_FILE)):
            times.append(os.stat(captions).st_mtime_ns)
        parts = [os.path.join(root, part) for part in (*image_listings.SPLITS, *image_listings.FOR_TEST)]
        for place in (root, *filter(os.path.isdir, parts)):
            times += sorted(os.stat(folder).st_mtime_ns for folder in _folders(Path(place)))[-1000:]
    return times


# cached, because a flat folder may hold a million files
_folders = FileCache(lambda place: [entry.path for entry in os.scandir(place) if entry.is_dir()], 64)


def _some(listing: Listing, most: int) -> list[ImageFile]:
    """Choose at most `most` files, alternating between classes, and sort them by class."""
    by_class: dict[int, list[ImageFile]] = {}
    for file in listing.files:
        by_class.setdefault(file.label, []).append(file)
    in_turn = chain.from_iterable(zip_longest(*by_class.values()))
    chosen = [file for file in in_turn if file is not None][:most]
    return sorted(chosen, key=lambda f: f.label)


# --- a folder browser ---


MOST_FOLDERS = 200  # that are listed
LOOKS = 20_000  # maximum entries that are read
DEPTH = 3  # folders below the counted one: train/class/part


def subfolders(place: Path) -> dict[Path, tuple[int, bool]]:
    """Return the subfolders of a folder by name, without hidden ones and links, and the images in each (see
    `count_images`). Raises OSError."""
    with os.scandir(place) as entries:
        names = [e.name for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
    names = sorted(names, key=str.lower)[:MOST_FOLDERS]
    return {place / name: count_images(place / name, LOOKS // len(names)) for name in names}


def count_images(place: Path, looks: int = LOOKS) -> tuple[int, bool]:
    """Count a folder's images a few levels deep, within `looks` entries; also return whether that is all of them."""
    count, waiting = 0, [(os.fspath(place), 0)]
    while waiting:
        inside, depth = waiting.pop(0)
        with contextlib.suppress(OSError), os.scandir(inside) as entries:  # an unreadable folder counts as empty
            for entry in entries:
                looks -= 1
                if looks < 0:
                    return count, False
                if not entry.is_dir(follow_symlinks=False):
                    count += os.path.splitext(entry.name)[1].lower() in ENDINGS
                elif depth < DEPTH and not entry.name.startswith("."):
                    waiting.append((entry.path, depth + 1))
    return count, True


# --- uploads ---


MOST_FILES, MOST_BYTES = 5_000, 1_000_000_000  # in total, because they pass through memory
DEEPEST = 6  # maximum folders in a path
LONGEST = 100  # maximum characters of a folder or file name
PART = 32  # files decoded per call
CHECKED_SIDE = 8  # side in pixels for the check
SPARE = 100_000_000  # bytes of the disk to leave free
UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')


Upload = tuple[str, bytes | memoryview]  # an uploaded file: its path according to the browser, and its bytes


def parts_of(name: str) -> tuple[str, ...]:
    """Split a relative path into safe names; () for a path that leads elsewhere.

    Drive letters, "..", hidden files and characters with a special meaning on some system are
    rejected, not replaced, because a class must not be renamed silently."""
    parts = name.replace("\\", "/").removeprefix("./").split("/")
    safe = (
        0 < len(part) <= LONGEST
        and not part.startswith(".")
        and not part.endswith((".", " "))
        and not UNSAFE.search(part)
        and part.isprintable()
        for part in parts
    )
    return tuple(parts) if len(parts) <= DEEPEST + 1 and all(safe) else ()


def save_uploads(
    files: Sequence[Upload], report: Callable[[float], object] = lambda _: None
) -> tuple[Path, list[tuple[str, str]]]:
    """Save pictures below the data home; return their folder, and the skipped files with reasons. An interrupted copy
    is removed. `report` receives the completed share. Raises: BadSetting for too many files or bytes, no picture, or a
    full disk; OSError."""
    home = data_home() / "dropped"
    storage.make_folder(home)
    size, free = sum(len(data) for _, data in files), shutil.disk_usage(home).free
    if len(files) > MOST_FILES or size > MOST_BYTES:
        raise BadSetting(
            "{files} files with {size} MB; at most {most_files} files with {most_bytes} MB can be dropped. Enter the "
            "folder's path instead.",
            files=f"{len(files):,}",
            size=f"{size / 1e6:,.0f}",
            most_files=f"{MOST_FILES:,}",
            most_bytes=f"{MOST_BYTES / 1e6:,.0f}",
        )
    if size + SPARE > free:
        values = {"free": f"{free / 1e6:,.0f}", "needed": f"{size / 1e6:,.0f}"}
        raise BadSetting("The disk has {free} MB free, and these images take {needed} MB.", **values)
    paths = [parts_of(name) for name, _ in files]
    first = {path[:-1][:1] for path in paths if path}  # () for a path without a folder
    shared = "".join(*first) if len(first) == 1 else ""  # the uploaded folder
    skipped: list[tuple[str, str]] = []
    written: dict[Path, str] = {}  # the names by path
    place = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=home))
    try:
        for number, ((name, data), path) in enumerate(zip(files, paths, strict=True), 1):
            inner = path[1:] if shared else path
            if reason := _write(data, inner, place):
                skipped.append((printable(name), reason))
            else:
                written[place.joinpath(*inner)] = name
            report(number / len(files))
        skipped += _remove_unreadable(written)
        if len(skipped) == len(files):
            name, reason = skipped[0]
            raise BadSetting("None of these files is an image. {name}: {reason}", name=name, reason=reason)
        title = re.sub(r"[^A-Za-z0-9._-]+", "-", shared).strip("-.") or "images"
        numbered = (home / f"{title}{number}" for number in ("", *(f"-{k}" for k in range(2, 10_000))))
        target = next(path for path in numbered if not path.exists())
        place.rename(target)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return target, skipped


def _write(data: bytes | memoryview, path: tuple[str, ...], place: Path) -> str:
    """Write a file below a folder; return why it was skipped, "" for a written one."""
    if not path:
        return N_("its path points outside the folder")
    if Path(path[-1]).suffix.lower() not in ENDINGS:
        return N_("not an image file, judging by its extension")
    target = place.joinpath(*path)
    if target.exists():
        return N_("another file has this name")
    storage.make_folder(target.parent)
    target.write_bytes(data)
    return ""


def _remove_unreadable(written: Mapping[Path, str]) -> list[tuple[str, str]]:
    """Remove files that cannot be decoded, and folders left empty; return the files with reasons."""
    paths, skipped = list(written), list[tuple[str, str]]()
    with contextlib.closing(DecodingPool(processes())) as pool, scratch_folder() as folder:
        (folder / "rows").touch()
        starts = range(0, len(paths), PART)
        chunks = [*pool.decode(str(folder / "rows"), [*map(str, paths)], (CHECKED_SIDE, 3, "crop"), starts, PART)]
    for row, reason in sorted((int(row), reason) for chunk in chunks for row, reason in chunk["failed"].items()):
        paths[row].unlink()
        with contextlib.suppress(OSError):  # the folder is not empty
            paths[row].parent.rmdir()
        skipped.append((printable(written[paths[row]]), message("cannot be read: {error}", error=reason)))
    return skipped
