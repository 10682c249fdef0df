"""Apply decisions to a folder of images: create a new folder, or a script that moves the files. Torch-free."""

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.safe_files import printable
from contrastive_core.data import image_sets
from contrastive_core.samples.annotations import Marks


@dataclass(frozen=True)
class Placed:
    """An image file and its destination: `place`, relative to the folder of its split; None if the image is dropped."""

    file: Path
    split: str
    base: Path  # the folder of its split
    place: Path | None


def placed(dataset: str, by_split: Mapping[str, Marks]) -> Iterator[Placed]:
    """Yield every image of `folder:PATH` with its destination. If the new class already has the file name, the old
    class is prepended to it. Raises BadSetting for other data sets, and for a class that the folder does not have."""
    if not dataset.startswith("folder:"):
        raise BadSetting(
            "a corrected folder needs a folder of images, and {dataset} is not one", dataset=printable(dataset)
        )
    for split, listing in image_sets.listings_of(dataset).items():
        decisions = by_split.get(split, {})
        parts = [Path(*file.path.parts[-len(file.id.split("/")) :]) for file in listing.files]
        folders = {
            listing.classes[f.label]: p.parts[0] for f, p in zip(listing.files, parts, strict=True) if f.label >= 0
        }
        taken = set(parts)
        for file, old in zip(listing.files, parts, strict=True):
            mark, place = decisions.get(file.id, {}), old
            if mark.get("what") == "relabel":
                if (label := str(mark.get("label"))) not in folders:
                    values = {"id": printable(file.id, 80), "label": printable(label, 80)}
                    raise BadSetting("{id} is relabeled as {label}, which is not a class of the folder", **values)
                place = Path(folders[label], *old.parts[1:])
                while place in taken:
                    place = place.with_name(f"{old.parts[0]}-{place.name}")
                taken.add(place)
            base = file.path.parents[len(old.parts) - 1]
            yield Placed(file.path, split, base, None if mark.get("what") == "drop" else place)


def write_folder(dataset: str, by_split: Mapping[str, Marks], out: Path, should_move: bool = False) -> int:
    """Create the folder `out` with train/ and test/, so that the test images stay the same; return its number of
    images. Files are hard links, or copies on another file system. With `should_move` they are moved, and dropped ones
    stay. Raises BadSetting, also if `out` exists."""
    every = [one for one in placed(dataset, by_split) if one.place is not None]
    if out.exists():
        raise BadSetting("{out} already exists", out=printable(out))
    for one in every:
        target = out / one.split / str(one.place)
        target.parent.mkdir(parents=True, exist_ok=True)
        if should_move:
            shutil.move(one.file, target)
            continue
        try:
            os.link(one.file, target)
        except OSError:
            shutil.copy2(one.file, target)
    return len(every)


def script(dataset: str, by_split: Mapping[str, Marks]) -> str:
    """Return a shell script that moves relabeled files to their class, and dropped ones to a folder beside the data."""
    root = Path(dataset.partition(":")[2]).expanduser()
    lines = ["#!/bin/sh", "set -e"]
    for one in placed(dataset, by_split):
        target = root.with_name(f"{root.name}-dropped") / one.file.relative_to(root)
        if one.place is not None:
            target = one.base / one.place
        if target != one.file:
            old, new, folder = (shlex.quote(str(path)) for path in (one.file, target, target.parent))
            lines.append(f"mkdir -p {folder} && mv -n {old} {new}")
    return "\n".join([*lines, ""])
