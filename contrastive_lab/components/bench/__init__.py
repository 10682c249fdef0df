"""Samples reviewed one by one in the browser, which has a stretch of the list and shows the next without asking.
What was decided is reported in order, and again until the server says that it has it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from contrastive_lab.components.shared.mount import mount, reported_state
from contrastive_lab.components.shared.thumbnails import NO_THUMBNAILS, ThumbnailSheet, thumbnail_sheet
from contrastive_lab.components.shared.transport import pack

LARGEST, LARGE = 224, 96  # pixels along the side of a suspect's picture, and of one beside it


@dataclass(frozen=True)
class ShownNeighbor:
    """A sample beside it: the number of its picture among all of them, −1 where it has none, and its caption."""

    picture: int
    text: str
    body: str = ""  # the sample itself, where it is a text
    is_named: bool = True  # the caption is shown, and not only read out


@dataclass(frozen=True)
class EvidenceGroup:
    """Samples that speak for a class or show what is near, under their title."""

    title: str
    near: Sequence[ShownNeighbor]


@dataclass(frozen=True)
class ShownChoice:
    """A decision and its button."""

    what: str  # as it is reported: keep, relabel or drop
    text: str
    key: str
    done: str  # what the sample is then


@dataclass(frozen=True)
class BenchItem:
    """A sample to decide on."""

    id: str
    badge: str  # its split; "": there is but one
    given: str
    suggested: str  # "": nothing is
    sentence: str  # what is said or asked of it
    why: str
    evidence: Sequence[EvidenceGroup] = ()
    looks_like: str = ""  # the class that is likelier than its label
    likeliness: str = ""  # how likely that class is
    wrong: float | None = None  # probability that the label is wrong, where the list is about it
    votes: Sequence[tuple[str, str]] = ()  # each voter and its class
    mark: str = ""  # keep, relabel, drop; "": undecided
    label: str = ""  # of a relabel
    likely: Sequence[str] = ()  # the likeliest other classes, each with a key
    keep_first: bool = False  # its label is probably right
    text: str = ""  # the sample itself, where it is a text


@dataclass(frozen=True, eq=False)
class Bench:
    """A stretch of the list, and where one is in it."""

    items: Sequence[BenchItem]
    content: str  # changes with the pictures
    start: int  # place in the list of the first, from 0
    total: int
    at: int  # place of the sample at hand; −1: it stands before the list's, and is not on it
    list: str  # its key, which a decision names
    of: str  # changes when decisions are on other data
    go: int  # changes when the page brings another sample to hand
    changed: int  # changes when the page decides on samples itself
    may_undo: bool
    choices: Sequence[ShownChoice] = ()
    are_pairs: bool = False  # the decision is on two rows; relabel says that the suggested one matches
    classes: Sequence[str] = ()
    ack: dict[str, Any] = field(default_factory=dict)  # `nonce` and `seq` of what was kept last
    pictures: ThumbnailSheet = NO_THUMBNAILS
    near: ThumbnailSheet = NO_THUMBNAILS
    so_far: bool = False  # the list will grow: a part of it is still being made


def sheets(suspects: np.ndarray | None, near: np.ndarray | None) -> tuple[ThumbnailSheet, ThumbnailSheet]:
    """Both pictures of pictures, from images (n, c, h, w) and (m, c, h, w) uint8."""
    tile = 32 if suspects is None else max(32, *suspects.shape[2:])
    return thumbnail_sheet(suspects, tile=min(tile, LARGEST)), thumbnail_sheet(near, tile=min(tile, LARGE))


def draw_bench(bench: Bench, key: str) -> None:
    """Draw the bench; what it reports is read by `reported`."""
    mount("bench", pack(bench), "decided", key, first={})


def reported(key: str) -> dict[str, Any]:
    """Return the browser's last report: `nonce`, `events`, `at` (an id) and `go`; {}: nothing yet."""
    return dict(reported_state(key, "decided") or {})
