"""Uploaded images: checked, and saved as a folder that is a data set like any other.

The folders of their paths are the classes. Nothing is written outside of the new folder, which gets
its name once it is complete.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from contrastive_core.data.image_decoding import ENDINGS, open_image
from contrastive_core.errors import BadSetting
from contrastive_core.messages import N_, message
from contrastive_core.paths import data_home
from contrastive_core.storage import atomic
from contrastive_core.storage.regular_files import printable

__all__ = ["MOST_BYTES", "MOST_FILES", "UploadedFile", "parts_of", "save_uploads", "title_of"]

MOST_FILES, MOST_BYTES = 5_000, 1_000_000_000  # in all, since they pass through memory
DEEPEST = 6  # folders of a path
LONGEST = 100  # characters of a part of it
SPARE = 100_000_000  # bytes of the disk that are left free
UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')


@runtime_checkable
class UploadedFile(Protocol):
    """An uploaded file: its path according to the browser, and its bytes."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def getvalue(self) -> bytes: ...


def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of a relative path, all safe names; none for a path that leads elsewhere.

    Drive letters, "..", hidden files and characters that some system takes for more than a letter
    are refused, not mended: a class must not change its name unseen."""
    path = name.replace("\\", "/").removeprefix("./")
    parts = path.split("/")
    safe = (
        0 < len(part) <= LONGEST
        and not part.startswith(".")
        and not part.endswith((".", " "))
        and not UNSAFE.search(part)
        and part.isprintable()
        for part in parts
    )
    return tuple(parts) if len(parts) <= DEEPEST + 1 and all(safe) else ()


def title_of(names: Sequence[str]) -> str:
    """Return a name for the set: the first folder of all paths, or "images" without a common one."""
    first = {parts[0] for name in names if len(parts := parts_of(name)) > 1}
    loose = any(len(parts_of(name)) == 1 for name in names)
    title = first.pop() if len(first) == 1 and not loose else "images"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", title).strip("-.") or "images"


def save_uploads(
    files: Sequence[UploadedFile], report: Callable[[float], None] = lambda _: None
) -> tuple[Path, list[tuple[str, str]]]:
    """Copy pictures below the data home; return their folder, and the skipped files with reasons.

    An interrupted copy is removed.
    Args: report: receives the completed share.
    Raises: BadSetting for too many files or bytes, or where none is a picture or the disk is too
        full; OSError.
    """
    _check(files)
    home = data_home() / "dropped"
    atomic.make_folder(home)
    free = shutil.disk_usage(home).free
    if (needed := sum(f.size for f in files)) + SPARE > free:
        raise BadSetting(
            message(
                "The disk has {free} MB free, and these images take {needed} MB.",
                free=f"{free / 1000000.0:,.0f}",
                needed=f"{needed / 1000000.0:,.0f}",
            )
        )
    title = title_of([f.name for f in files])
    place = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=home))
    try:
        skipped = _copy(files, place, report)
        if len(skipped) == len(files):
            name, reason = skipped[0]
            raise BadSetting(message("None of these files is an image. {name}: {reason}", name=name, reason=reason))
        target = _unused_path(home, title)
        place.rename(target)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return target, skipped


def _check(files: Sequence[UploadedFile]) -> None:
    size = sum(f.size for f in files)
    if len(files) > MOST_FILES or size > MOST_BYTES:
        raise BadSetting(
            message(
                "{files} files of {size} MB; at most {most_files} of {most_bytes} MB are taken here. "
                "Write the folder's path instead.",
                files=f"{len(files):,}",
                size=f"{size / 1000000.0:,.0f}",
                most_files=f"{MOST_FILES:,}",
                most_bytes=f"{MOST_BYTES / 1000000.0:,.0f}",
            )
        )


def _copy(files: Sequence[UploadedFile], place: Path, report: Callable[[float], None]) -> list[tuple[str, str]]:
    """Write the pictures; return names and reasons of the other files."""
    skipped: list[tuple[str, str]] = []
    shared = _common_folders([f.name for f in files])
    for number, file in enumerate(files, 1):
        if reason := _write(file, place, shared):
            skipped.append((printable(file.name), reason))
        report(number / len(files))
    return skipped


def _write(file: UploadedFile, place: Path, shared: int) -> str:
    """Write a file; return why it was skipped, "" for a written one."""
    parts = parts_of(file.name)[shared:]
    if not parts:
        return N_("its path is no plain path below the folder")
    if Path(parts[-1]).suffix.lower() not in ENDINGS:
        return N_("no image, by its ending")
    data = file.getvalue()
    try:
        with open_image(data):
            pass
    except Exception as error:  # whatever Pillow raises at a damaged file
        return message("cannot be read: {error}", error=error)
    target = place.joinpath(*parts)
    if target.exists():
        return N_("another file has this name")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return ""


def _common_folders(names: Sequence[str]) -> int:
    """Return 1 if all paths begin with one folder, the uploaded one, else 0."""
    parts = [p for name in names if (p := parts_of(name))]
    return int(bool(parts) and len({p[0] for p in parts}) == 1 and all(len(p) > 1 for p in parts))


def _unused_path(home: Path, title: str) -> Path:
    """Return a path that does not exist yet."""
    numbers = ("", *(f"-{q}" for q in range(2, 10_000)))
    return next(p for q in numbers if not (p := home / f"{title}{q}").exists())
