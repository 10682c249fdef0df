"""Images that were handed over one by one, with paths that nobody has checked: kept as a folder.

They become a data set like any folder of images: classes are the folders of their paths. Nothing is
written outside of the new folder, which takes its name when all of it is there. Torch-free.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from contrastive_core.data.pictures import ENDINGS, opened_picture
from contrastive_core.errors import BadSetting
from contrastive_core.paths import data_home
from contrastive_core.storage import atomic
from contrastive_core.storage.regular import printable

__all__ = ["MOST_BYTES", "MOST_FILES", "Dropped", "keep", "parts_of", "title_of"]

MOST_FILES, MOST_BYTES = 5_000, 1_000_000_000  # in all, since they pass through memory
DEEPEST = 6  # folders of a path
LONGEST = 100  # characters of a part of it
SPARE = 100_000_000  # bytes of the disk that are left free
UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')


@runtime_checkable
class Dropped(Protocol):
    """A file that was handed over: its path as the browser tells it, its bytes."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    def getvalue(self) -> bytes: ...


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a relative path, each a safe name; none for a path that leads elsewhere.

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
    """The folder that all paths begin with, as a name for the set; "images" where there is none."""
    first = {parts[0] for name in names if len(parts := parts_of(name)) > 1}
    loose = any(len(parts_of(name)) == 1 for name in names)
    title = first.pop() if len(first) == 1 and not loose else "images"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", title).strip("-.") or "images"


def keep(
    files: Sequence[Dropped], report: Callable[[float], None] = lambda _: None
) -> tuple[Path, list[tuple[str, str]]]:
    """Copy pictures below the lab's home; returns their folder, and what was left out, with the
    reason. What was copied is removed again where this does not come to its end.

    Args: report: gets the share that is done. Raises: BadSetting for too many files or bytes, or
    where none is a picture or the disk is too full; OSError.
    """
    _check(files)
    home = data_home() / "dropped"
    atomic.make_folder(home)
    free = shutil.disk_usage(home).free
    if (needed := sum(f.size for f in files)) + SPARE > free:
        raise BadSetting(
            f"The disk has {free / 1e6:,.0f} MB free, and these images take {needed / 1e6:,.0f} MB."
        )
    title = title_of([f.name for f in files])
    place = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=home))
    try:
        left_out = _copy(files, place, report)
        if len(left_out) == len(files):
            name, reason = left_out[0]
            raise BadSetting(f"None of these files is an image. {name}: {reason}")
        target = _free(home, title)
        place.rename(target)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return target, left_out


def _check(files: Sequence[Dropped]) -> None:
    size = sum(f.size for f in files)
    if len(files) > MOST_FILES or size > MOST_BYTES:
        raise BadSetting(
            f"{len(files):,} files of {size / 1e6:,.0f} MB; at most {MOST_FILES:,} of "
            f"{MOST_BYTES / 1e6:,.0f} MB are taken here. Write the folder's path instead."
        )


def _copy(
    files: Sequence[Dropped], place: Path, report: Callable[[float], None]
) -> list[tuple[str, str]]:
    """Write what is a picture; gives names and reasons of the rest."""
    left_out: list[tuple[str, str]] = []
    shared = _shared([f.name for f in files])
    for number, file in enumerate(files, 1):
        if why := _write(file, place, shared):
            left_out.append((printable(file.name), why))
        report(number / len(files))
    return left_out


def _write(file: Dropped, place: Path, shared: int) -> str:
    """Why a file was left out; "" once it is written."""
    parts = parts_of(file.name)[shared:]
    if not parts:
        return "its path is no plain path below the folder"
    if Path(parts[-1]).suffix.lower() not in ENDINGS:
        return "no image, by its ending"
    data = file.getvalue()
    try:
        with opened_picture(data):
            pass
    except Exception as error:  # whatever Pillow raises at a damaged file
        return f"cannot be read: {error}"
    target = place.joinpath(*parts)
    if target.exists():
        return "another file has this name"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return ""


def _shared(names: Sequence[str]) -> int:
    """1 where all paths begin with one folder, which is the one that was dropped; else 0."""
    parts = [p for name in names if (p := parts_of(name))]
    return int(bool(parts) and len({p[0] for p in parts}) == 1 and all(len(p) > 1 for p in parts))


def _free(home: Path, title: str) -> Path:
    """A name that is not taken."""
    numbers = ("", *(f"-{q}" for q in range(2, 10_000)))
    return next(p for q in numbers if not (p := home / f"{title}{q}").exists())
