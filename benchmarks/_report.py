"""RESULTS.md: a row for each goal on one machine, what was missed, what each script printed."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _machine

__all__ = ["Record", "goals", "merged", "read", "report"]

ROOT = Path(__file__).resolve().parents[1]
Record = dict[str, Any]
Line = dict[str, Any]
Goals = Mapping[str, Mapping[str, str]]
SAME_EVERYWHERE = ("planted_errors", "label_errors", "loop_doctor")  # what is found, not how fast


def read(results: Path, names: Sequence[str]) -> list[Record]:
    """The records of `names`, in their order."""
    paths = [(name, results / f"{name}.json") for name in names]
    return [{**json.loads(path.read_text()), "name": name} for name, path in paths if path.exists()]


def merged(before: Record | None, part: Record) -> Record:
    """A record with a part of it run again: its lines take the place of those of the same name, and
    its text, which begins with rows and work, of the same; `parts` says when each was run."""
    if before is None:
        before = {"lines": [], "text": []}
    lines = {line["name"]: line for line in [*before["lines"], *part["lines"]]}
    text = {_measured(line): line for line in [*before["text"], *part["text"]]}
    when = f"{part['date']}, commit {part['commit']}, load before {part['load_before']:.1f}"
    ran = {_measured(line): when for line in part["text"]}
    whole = {**before, **part, "lines": list(lines.values())}
    return {
        **whole,
        "text": grown([text[key] for key in sorted(text, key=_rows)]),
        "parts": {**before.get("parts", {}), **ran},
        "met": all(line["met"] for line in lines.values()),
    }


def grown(text: list[str]) -> list[str]:
    """Lines of rows and work, fewer rows first, with how many times as long each took as the one of
    the same work before (`_rows.told_of` prints them)."""
    lines, before = [], {}
    for line in text:
        if match := re.match(r"(\s*[\d,]+  (.{28}))(\s*[\d.]+) s .{6}(.*)", line):
            start, work, seconds, rest = match.groups()
            growth = f"{float(seconds) / before[work]:5.1f}×" if work in before else " " * 6
            before[work] = float(seconds)
            line = f"{start}{seconds} s {growth}{rest}"
        lines.append(line)
    return lines


def _measured(line: str) -> str:
    """Rows and work of a printed line, which its figures follow."""
    return " ".join(re.split(r"\s{2,}", line.strip())[:2])


def _rows(measured: str) -> int:
    number = measured.split(" ")[0].replace(",", "")
    return int(number) if number.isdigit() else 0


def goals() -> Goals:
    """Return the reason for each goal, by benchmark and row (goals.toml)."""
    return tomllib.loads((ROOT / "benchmarks/goals.toml").read_text())


def row_name(line: Line) -> str:
    """Return the work and its peer, as goals.toml names them."""
    return line["name"] if line["peer"] == "limit" else f"{line['name']} | {line['peer']}"


def with_goals(records: list[Record], reasons: Goals) -> list[Record]:
    """Keep the lines that have a goal in goals.toml."""

    def has_goal(record: Record, line: Line) -> bool:
        return row_name(line) in reasons.get(record["name"], {})

    return [{**r, "lines": [x for x in r.get("lines", [r]) if has_goal(r, x)]} for r in records]


def report(records: list[Record], reasons: Goals) -> str:
    """Return the text of RESULTS.md: the rows that goals.toml names, and all that was printed."""
    stated = with_goals(records, reasons)
    ran = Counter((record["machine"], record["date"]) for record in records)
    most = max(ran, key=lambda at: (ran[at], at[1]))  # machine and day of most scripts, of the newest of these
    text = [
        "# Benchmarks",
        "",
        f"Made by `python -m benchmarks` on {_machine.short(most[0])}, {most[1]}; a row of another",
        "day names it, and a time or a size of another machine names that. A ratio says how many times as",
        "long the named peer takes for the same work; both sides alternate in the same run. A goal is met",
        "only if every round meets it. The reasons stand in goals.toml; what else a script measures stands",
        "in what it printed, with the load of the machine before it ran.",
        "",
        table(stated, reasons, *most),
        "",
        *missed(stated),
    ]
    for record in records:
        name = record["name"]
        text += ["", f"## {name}", "", f"`python -m benchmarks.{name}`", "", *printed(record)]
    return "\n".join(text) + "\n"


def printed(record: Record) -> list[str]:
    """What a script printed, and when."""
    commit = f"; commit {record['commit']}" if record.get("commit") else ""
    where = f"{record['machine']}; {record['date']}{commit}; load before {record['load_before']:.1f}"
    packages = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    parts: dict[str, list[str]] = {}
    for part, when in record.get("parts", {}).items():
        parts.setdefault(when, []).append(part)
    ran = [f"Run apart ({when}): {'; '.join(names)}." for when, names in parts.items()]
    return [f"{where}.", f"{packages}.", *ran, "", "```", *record["text"], "```"]


# --- the table ---------------------------------------------------------------------------------


def table(records: list[Record], reasons: Goals, machine: str, date: str) -> str:
    """A row for each goal: its peer, what was measured, and where and when if not on that machine and date."""
    text = ["| work | peer | goal | measured | reason for the goal |", "| --- | --- | ---: | --- | --- |"]
    for record in records:
        is_elsewhere = record["machine"] != machine and record["name"] not in SAME_EVERYWHERE
        apart = [_machine.short(record["machine"])] * is_elsewhere
        apart += [record["date"]] * (record["date"] != date)
        for line in record["lines"]:
            peer = "" if line["peer"] == "limit" else line["peer"]
            reason = reasons[record["name"]][row_name(line)]
            text.append(f"| {line['name']} | {peer} | {goal(line)} | {'; '.join([cell(line), *apart])} | {reason} |")
    return "\n".join(text)


def goal(line: Line) -> str:
    """What is to be reached: a limit, or how many times as long the peer must take."""
    if line["peer"] == "limit":
        return f"≤ {number(line['peer_value'])} {line['unit']}".strip()
    return f"≥ {line['goal']:.2f}×" if isinstance(line["goal"], int | float) else ""


def cell(line: Line) -> str:
    """Ours, the ratio with its range, and whether its goal was met."""
    parts = [f"{number(line['value'])} {line['unit']}".strip()]
    if line["peer"] != "limit":
        low, high = line.get("range", (line["ratio"], line["ratio"]))
        spread = "" if low == high else f" ({low:.2f} to {high:.2f})"
        parts.append(f"{line['ratio']:.2f}×{spread}")
    return ", ".join([*parts, "met" if line["met"] else "**missed**"])


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# --- what was missed ---------------------------------------------------------------------------


def missed(records: list[Record]) -> list[str]:
    """What was missed, by how much, and why as far as it is known (missed.toml)."""
    why = tomllib.loads((ROOT / "benchmarks/missed.toml").read_text())
    found = []
    for record in records:
        lines = [f"- **{line['name']}**: {far(line)}" for line in record["lines"] if not line["met"]]
        found += lines
        if lines and (known := why.get(record["name"])):
            found += ["", known, ""]
    return ["## Missed", "", *found] if found else ["Every goal was met."]


def far(line: Line) -> str:
    """By how much a goal is missed."""
    if line["peer"] == "limit":
        return f"{number(line['value'])} {line['unit']}, not {number(line['peer_value'])}"
    low, high = line.get("range", (line["ratio"], line["ratio"]))
    return f"{low:.2f} to {high:.2f} times {line['peer']}, not {line['goal']:.2f}"
