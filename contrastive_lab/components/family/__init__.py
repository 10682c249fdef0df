"""The family tree of the methods, an image whose nodes are links."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from contrastive_lab.components.shared.mount import mount, reported_state
from contrastive_lab.components.shared.transport import pack

KEY = "methods-family"


@dataclass(frozen=True)
class FamilyMember:
    """A method in the tree: its position in per cent of the image, and its relation to the chosen one."""

    name: str
    title: str
    year: int
    x: float
    y: float
    state: str  # "chosen", "beside", "kin" or ""
    hint: str  # what it took from whom, and where its ideas went
    has: Sequence[str]  # the filters that it passes


@dataclass(frozen=True)
class FamilyLine:
    """A curve from a method to one that builds on it."""

    d: str
    ends: tuple[str, str]
    state: str  # "on" for those of the chosen method


@dataclass(frozen=True)
class FamilyTree:
    """The family tree with its texts and filters."""

    title: str
    hint: str
    methods: Sequence[FamilyMember]
    lines: Sequence[FamilyLine]
    years: Sequence[Mapping[str, float]]
    filter_title: str
    filters: Mapping[str, str]  # texts by name
    has: Sequence[str]  # the filters that are on at first


def draw_family(tree: FamilyTree, choose: Callable[[str, bool], None]) -> None:
    """Draw the tree. Args: choose: called on a click with the method's name and whether to show it beside the current
    one."""

    def report() -> None:
        chosen = reported_state(KEY, "chosen") or {}
        if name := chosen.get("name"):
            choose(str(name), bool(chosen.get("isBeside")))

    mount("family", pack(tree), "chosen", KEY, first={}, on_change=report)
