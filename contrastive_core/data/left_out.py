"""What has to be said of files that are not among a split's images, or only in part, in whole
sentences. Torch-free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

__all__ = ["sentences"]

REASONS = 3  # for files left out that are named
Files = Sequence[tuple[str, str]]  # ids, with the reason, or with what was taken
Reasons = list[tuple[str, int]]


def sentences(split: str, skipped: Files, notes: Files) -> list[str]:
    """How many files were left out, or taken in part, and why; the first of them is named."""
    images = "the training images" if split == "train" else "the test images"
    said: list[str] = []
    if skipped:
        n, (first, _), reasons = len(skipped), skipped[0], _reasons(skipped)
        said += _told(
            f"1 file was left out of {images}, {first}: {reasons[0][0]}.",
            f"{n:,} files were left out of {images} (the first is {first}): {reasons[0][0]}.",
            f"{n:,} files were left out of {images} (the first is {first}).",
            reasons,
        )
    if notes:
        n, (first, _), reasons = len(notes), notes[0], _reasons(notes)
        said += _told(
            f"1 file of {images} was not taken whole, {first}: {reasons[0][0]}.",
            f"{n:,} files of {images} were not taken whole (the first is {first}): "
            f"{reasons[0][0]}.",
            f"{n:,} files of {images} were not taken whole (the first is {first}).",
            reasons,
        )
    return said


def _told(one: str, alike: str, several: str, reasons: Reasons) -> list[str]:
    """The sentence on one file, on many for one reason, or on many for several, which follow: each
    of the most frequent, and all others together."""
    if len(reasons) == 1:
        return [one if reasons[0][1] == 1 else alike]
    each = [f"The reason for {count:,} of them: {reason}." for reason, count in reasons[:REASONS]]
    remaining = sum(count for _, count in reasons[REASONS:])
    return [several, *each, *([f"Other reasons for {remaining:,} of them."] if remaining else [])]


def _reasons(files: Files) -> Reasons:
    """Reasons and how many files have each, the most frequent first."""
    return Counter(_plainly(reason).removesuffix(".") for _, reason in files).most_common()


def _plainly(reason: str) -> str:
    """A reason as a person says it, where it is kept beside decoded images in Pillow's words."""
    said = reason.lower()
    if "truncated" in said:  # "Truncated File Read", "image file is truncated (7 bytes …"
        return "the file is cut off"
    return "the file is damaged" if "data stream" in said else reason
