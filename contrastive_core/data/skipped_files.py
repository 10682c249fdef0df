"""Sentences about files that were skipped, or read only in part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from contrastive_core.messages import N_, message

__all__ = ["skipped_sentences"]

REASONS = 3  # that are listed
Files = Sequence[tuple[str, str]]  # ids, with the reason, or with the note
Reasons = list[tuple[str, int]]


SKIPPED = (  # one file; several for one reason; several for different reasons
    N_("1 file was left out of {images}, {first}: {reasons}."),
    N_("{n} files were left out of {images} (the first is {first}): {reasons}."),
    N_("{n} files were left out of {images} (the first is {first})."),
)
PARTLY_READ = (
    N_("1 file of {images} was not taken whole, {first}: {reasons}."),
    N_("{n} files of {images} were not taken whole (the first is {first}): {reasons}."),
    N_("{n} files of {images} were not taken whole (the first is {first})."),
)


def skipped_sentences(split: str, skipped: Files, notes: Files) -> list[str]:
    """Return how many files were skipped, or read in part, and why; the first file is named."""
    images = N_("the training images") if split == "train" else N_("the test images")
    return [*_sentences(SKIPPED, images, skipped), *_sentences(PARTLY_READ, images, notes)]


def _sentences(templates: tuple[str, str, str], images: str, files: Files) -> list[str]:
    """Return the sentence that fits, and for several reasons a sentence on each of the most frequent."""
    if not files:
        return []
    one_file, one_reason, several_reasons = templates
    n, first, reasons = f"{len(files):,}", files[0][0], _count_reasons(files)
    if len(files) == 1:
        return [message(one_file, images=images, first=first, reasons=reasons[0][0])]
    if len(reasons) == 1:
        return [message(one_reason, n=n, images=images, first=first, reasons=reasons[0][0])]
    each = [
        message("The reason for {count} of them: {reason}.", count=f"{count:,}", reason=reason)
        for reason, count in reasons[:REASONS]
    ]
    remaining = sum(count for _, count in reasons[REASONS:])
    others = [message("Other reasons for {remaining} of them.", remaining=f"{remaining:,}")] if remaining else []
    return [message(several_reasons, n=n, images=images, first=first), *each, *others]


def _count_reasons(files: Files) -> Reasons:
    """Return reasons with their numbers of files, the most frequent first."""
    return Counter(_plain_reason(reason).removesuffix(".") for _, reason in files).most_common()


def _plain_reason(reason: str) -> str:
    """Return a reason in plain words in place of Pillow's."""
    lower = reason.lower()
    if "truncated" in lower:  # "Truncated File Read", "image file is truncated (7 bytes …"
        return N_("the file is cut off")
    return N_("the file is damaged") if "data stream" in lower else reason
