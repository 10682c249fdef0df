"""The family tree of the methods: which method builds on which, by year from left to right. It is the page's
navigation."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from contrastive_core.base.cards import USES, MethodEntry
from contrastive_lab import locale
from contrastive_lab.components.family import FamilyLine, FamilyMember, FamilyTree
from contrastive_lab.locale import N_, _

LABELS, CAPTIONS, WITHOUT = N_("labels"), N_("captions"), N_("no negatives")
FILTERS = (LABELS, CAPTIONS, WITHOUT, *USES)
TOP, BOTTOM = 16.0, 80.0  # per cent of the picture's height between which methods stand; filters are below
BULGE = 0.62  # of a column's width: how far a line within a year swings to the right

Cards = Mapping[str, MethodEntry]


def tree_of(methods: Cards, chosen: str, others: Sequence[str], has: Sequence[str]) -> FamilyTree:
    """Return the tree of all methods. Args: others: methods compared with the chosen one; has: active filters."""
    at, years = places(methods), sorted({about["year"] for about in methods.values()})
    debts = [(old, name) for name, about in methods.items() for old, _what in about["builds_on"]]
    kin = {end for ends in debts if chosen in ends for end in ends}
    states = dict.fromkeys(kin, "kin") | dict.fromkeys(others, "beside") | {chosen: "chosen"}
    members = [
        FamilyMember(
            name=name,
            title=_title(about),
            year=about["year"],
            x=at[name][0],
            y=at[name][1],
            state=states.get(name, ""),
            hint="\n".join(debts_of(name, methods)),
            has=passes(about),
        )
        for name, about in methods.items()
    ]
    width = 100 / len(years)
    return FamilyTree(
        title=_("Family tree of the methods"),
        hint=_("Click to read, Shift-click to compare."),
        methods=members,
        lines=[_line(ends, at, width, "on" if chosen in ends else "") for ends in debts],
        years=[{"year": year, "x": (column + 0.5) * width} for column, year in enumerate(years)],
        filter_title=_("Highlight methods with"),
        filters={use: locale.text(use) for use in FILTERS},
        has=[use for use in has if use in FILTERS],
    )


def passes(about: MethodEntry) -> list[str]:
    """Return the filters that a method passes."""
    kind = [LABELS] * about["needs_labels"] + [CAPTIONS] * about["needs_captions"]
    return [*about["uses"], *kind, *[WITHOUT] * (USES[0] not in about["uses"])]


def debts_of(name: str, methods: Cards) -> list[str]:
    """List the sources of a method's ideas and the methods that took them, a line each."""
    took = [f"{_title(methods[old])} ({locale.text(what)})" for old, what in methods[name]["builds_on"]]
    gave = [_title(later) for later in methods.values() if any(old == name for old, _what in later["builds_on"])]
    lines = [_("Builds on {methods}.").format(methods=", ".join(took))] if took else []
    return lines + ([_("Its ideas went into {methods}.").format(methods=", ".join(gave))] if gave else [])


def places(methods: Cards) -> dict[str, tuple[float, float]]:
    """Return each method's position in per cent of width and height. Each year has a column, ordered by the heights of
    the methods that its methods build on."""
    by_year: dict[int, list[str]] = {}
    for name, about in methods.items():
        by_year.setdefault(about["year"], []).append(name)
    most = max(map(len, by_year.values()))
    rows: dict[str, float] = {}
    for _year, those in sorted(by_year.items()):
        wish = {name: _wish(name, methods, rows) for name in those}
        limit = (most - len(those)) / 2
        middle = min(limit, max(-limit, fmean(wish.values())))
        for place, name in enumerate(sorted(those, key=wish.__getitem__)):
            rows[name] = middle + place - (len(those) - 1) / 2
    step = (BOTTOM - TOP) / max(1, most - 1)
    columns = {name: column for column, (_year, those) in enumerate(sorted(by_year.items())) for name in those}
    center, width = (TOP + BOTTOM) / 2, 100 / len(by_year)
    return {name: ((columns[name] + 0.5) * width, center + step * row) for name, row in rows.items()}


def _wish(name: str, methods: Cards, rows: Mapping[str, float]) -> float:
    """Return the mean row of the methods that a method builds on, by way of their ancestors for the same year; 0
    without any."""
    wishes = [
        rows[old] if methods[old]["year"] < methods[name]["year"] else _wish(old, methods, rows)
        for old, _what in methods[name]["builds_on"]
        if old in methods
    ]
    return fmean(wishes) if wishes else 0.0


def _line(ends: tuple[str, str], at: Mapping[str, tuple[float, float]], width: float, state: str) -> FamilyLine:
    """Return a curve from the center of a method to that of one that builds on it; boxes cover its ends."""
    (x, y), (to_x, to_y) = at[ends[0]], at[ends[1]]
    if x == to_x:
        far = near = x + BULGE * width * 4 / 3
    else:
        far, near = x + width / 2, to_x - width / 2
    return FamilyLine(f"M{x:.2f},{y:.2f} C{far:.2f},{y:.2f} {near:.2f},{to_y:.2f} {to_x:.2f},{to_y:.2f}", ends, state)


def _title(about: MethodEntry) -> str:
    return str(locale.text(about["title"]))
