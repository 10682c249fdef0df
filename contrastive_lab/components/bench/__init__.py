"""Review of samples one by one in the browser, which holds a section of the list and moves on without the server.
Decisions are reported in order, and repeated until the server confirms them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from contrastive_lab.components.shared.mount import (
    NO_THUMBNAILS,
    ThumbnailSheet,
    mount,
    pack,
    reported_state,
    thumbnail_sheet,
)
from contrastive_lab.texts import Said

LARGEST, LARGE = 224, 96  # pixels along the side of a suspect's picture, and of one beside it


@dataclass(frozen=True)
class ShownNeighbor:
    """A sample shown beside another: the index of its image (−1: none), and its caption."""

    picture: int
    text: str
    body: Said | None = None  # the sample itself, where it is a text
    is_named: bool = True  # the caption is shown, and not only read out


@dataclass(frozen=True)
class EvidenceGroup:
    """Titled group of samples that support a class or are near."""

    title: str
    near: Sequence[ShownNeighbor]


@dataclass(frozen=True)
class ShownChoice:
    """A possible decision and its button."""

    what: str  # as it is reported: keep, relabel or drop
    text: str
    key: str
    done: str  # what the sample is then


@dataclass(frozen=True)
class BenchItem:
    """A sample under review."""

    id: str
    badge: str  # its split; "": there is but one
    given: str
    suggested: str  # "": nothing is
    sentence: str  # what is said or asked of it
    why: str
    evidence: Sequence[EvidenceGroup] = ()
    looks_like: str = ""  # the class that is likelier than its label
    likeliness: str = ""  # how likely that class is
    wrong: float | None = None  # suspicion that the label is wrong, where the list is about it
    votes: Sequence[tuple[str, str]] = ()  # each voter and its class
    mark: str = ""  # keep, relabel, drop; "": undecided
    label: str = ""  # of a relabel
    likely: Sequence[str] = ()  # the likeliest other classes, each with a key
    keep_first: bool = False  # its label is probably right
    text: Said | None = None  # the sample itself, where it is a text
    front: Sequence[ShownNeighbor] = ()  # in its place, where the decision is about other rows
    tally: Sequence[tuple[str, int]] = ()  # labels of the nearest rows of a row without a picture


@dataclass(frozen=True, eq=False)
class Bench:
    """Data of a review: a section of the list, and the current position in it."""

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
    ack: Mapping[str, str | int] = field(default_factory=dict)  # `nonce` and `seq` of what was kept last
    pictures: ThumbnailSheet = NO_THUMBNAILS
    near: ThumbnailSheet = NO_THUMBNAILS
    end: str = ""  # what is not on the list, said after its last picture
    note: str = ""  # on the whole list


def sheets(suspects: np.ndarray | None, near: np.ndarray | None) -> tuple[ThumbnailSheet, ThumbnailSheet]:
    """Return both thumbnail sheets, from images (n, c, h, w) and (m, c, h, w) uint8."""
    tile = 32 if suspects is None else max(32, *suspects.shape[2:])
    return thumbnail_sheet(suspects, tile=min(tile, LARGEST)), thumbnail_sheet(near, tile=min(tile, LARGE))


def draw_bench(bench: Bench, key: str) -> None:
    """Draw the bench; `reported` reads its reports."""
    mount("bench", pack(bench), "decided", key, first={})


class DeskEvent(TypedDict, total=False):
    """A decision as the browser reports it, or "undo"."""

    seq: int
    what: str
    items: list[dict[str, str | None]]  # each with `id`, and `label` for a relabel


class BenchReport(TypedDict, total=False):
    """The browser's last report."""

    nonce: str
    list: str  # the key of the list
    events: Sequence[DeskEvent]  # in order
    at: str  # the id of the sample at hand
    go: int


def reported(key: str) -> BenchReport:
    """Return the last report; {} before the first."""
    report: BenchReport | None = reported_state(key, "decided")
    return report or {}
