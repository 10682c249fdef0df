"""Uploaded images, checked and saved as a folder that is an ordinary data set. The folders in their paths become the
classes. Nothing is written outside of the new folder, which gets its name once it is complete."""

import contextlib
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from contrastive_core.base import safe_files
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.messages import N_, message
from contrastive_core.base.paths import data_home
from contrastive_core.base.safe_files import printable
from contrastive_core.data.image_decoding import ENDINGS, DecodingPool, processes

MOST_FILES, MOST_BYTES = 5_000, 1_000_000_000  # in total, because they pass through memory
DEEPEST = 6  # maximum folders in a path
LONGEST = 100  # maximum characters of a folder or file name
PART = 32  # files decoded per call
SIDE = 8  # side in pixels for the check
SPARE = 100_000_000  # bytes of the disk to leave free
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
    files: Sequence[UploadedFile], report: Callable[[float], None] = lambda _: None
) -> tuple[Path, list[tuple[str, str]]]:
    """Save pictures below the data home; return their folder, and the skipped files with reasons. An interrupted copy
    is removed. `report` receives the completed share. Raises: BadSetting for too many files or bytes, no picture, or a
    full disk; OSError."""
    home = data_home() / "dropped"
    safe_files.make_folder(home)
    _check_space(files, home)
    paths = [parts_of(file.name) for file in files]
    first = {path[:-1][:1] for path in paths if path}  # () for a path without a folder
    shared = "".join(*first) if len(first) == 1 else ""  # the uploaded folder
    skipped: list[tuple[str, str]] = []
    written: dict[Path, UploadedFile] = {}
    place = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=home))
    try:
        for number, (file, path) in enumerate(zip(files, paths, strict=True), 1):
            inner = path[1:] if shared else path
            if reason := _write(file, inner, place):
                skipped.append((printable(file.name), reason))
            else:
                written[place.joinpath(*inner)] = file
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


def _check_space(files: Sequence[UploadedFile], home: Path) -> None:
    size, free = sum(f.size for f in files), shutil.disk_usage(home).free
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


def _write(file: UploadedFile, path: tuple[str, ...], place: Path) -> str:
    """Write a file below a folder; return why it was skipped, "" for a written one."""
    if not path:
        return N_("its path points outside the folder")
    if Path(path[-1]).suffix.lower() not in ENDINGS:
        return N_("not an image file, judging by its extension")
    target = place.joinpath(*path)
    if target.exists():
        return N_("another file has this name")
    safe_files.make_folder(target.parent)
    target.write_bytes(file.getvalue())
    return ""


def _remove_unreadable(written: Mapping[Path, UploadedFile]) -> list[tuple[str, str]]:
    """Remove files that cannot be decoded, and folders left empty; return the files with reasons."""
    paths, skipped = list(written), list[tuple[str, str]]()
    with contextlib.closing(DecodingPool(processes())) as pool, scratch_folder() as folder:
        (folder / "rows").touch()
        starts = range(0, len(paths), PART)
        chunks = [*pool.decode(str(folder / "rows"), [*map(str, paths)], (SIDE, 3, "crop"), starts, PART)]
    for row, reason in sorted((int(row), reason) for chunk in chunks for row, reason in chunk["failed"].items()):
        paths[row].unlink()
        with contextlib.suppress(OSError):  # the folder is not empty
            paths[row].parent.rmdir()
        skipped.append((printable(written[paths[row]].name), message("cannot be read: {error}", error=reason)))
    return skipped
