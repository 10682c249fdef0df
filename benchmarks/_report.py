"""RESULTS.md: a table with a column for each machine, what was missed, what each script printed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import _machine

__all__ = ["Record", "goals", "merged", "read", "report"]

ROOT = Path(__file__).resolve().parents[1]
Record = dict[str, Any]
Line = dict[str, Any]
Goals = Mapping[str, Mapping[str, str]]


def read(results: Path, names: Sequence[str]) -> list[Record]:
    """The records of all machines, in the order of `names`; of one name, by machine."""
    found = [(name, path) for name in names for path in sorted(results.glob(f"*/{name}.json"))]
    return [{**json.loads(path.read_text()), "name": name} for name, path in found]


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
    made = "python -m benchmarks"
    text = [
        "# Benchmarks",
        "",
        f"Made by `{made}`, with a column for each machine that it ran on. A ratio says how",
        "many times as long the named peer takes for the same work; both sides alternate in the",
        "same run. A goal is met only if every round meets it. Two columns may be of different",
        "days: what each script printed, below, says of which. † An older program and benchmark:",
        "the only figures there are of that machine. The reasons stand in goals.toml; what else",
        "a script measures stands in what it printed.",
        "",
        table(stated, reasons),
        "",
        *divided(stated),
        *missed(stated),
    ]
    for name in dict.fromkeys(record["name"] for record in records):
        text += ["", f"## {name}", "", f"`python -m benchmarks.{name}`"]
        for record in records:
            if record["name"] == name:
                text += ["", *printed(record)]
    return "\n".join(text) + "\n"


def printed(record: Record) -> list[str]:
    """What a script printed on one machine, and when."""
    commit = f"; commit {record['commit']}" if record.get("commit") else ""
    where = f"{record['machine']}; {record['date']}{commit}; load before {record['load_before']:.1f}"
    packages = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    parts: dict[str, list[str]] = {}
    for part, when in record.get("parts", {}).items():
        parts.setdefault(when, []).append(part)
    ran = [f"Run apart ({when}): {'; '.join(names)}." for when, names in parts.items()]
    return [f"{where}.", f"{packages}.", *ran, "", "```", *record["text"], "```"]


# --- the table ---------------------------------------------------------------------------------


def lines_of(records: list[Record]) -> dict[tuple[str, str, str, int], dict[str, Line]]:
    """By benchmark, work, peer and place among its namesakes: each machine's line.

    The newest record comes first, so that the rows stand as the script has them now.
    """
    rows: dict[tuple[str, str, str, int], dict[str, Line]] = {}
    order = {name: i for i, name in enumerate(dict.fromkeys(r["name"] for r in records))}
    newest = sorted(records, key=lambda r: r["date"], reverse=True)
    for record in sorted(newest, key=lambda r: order[r["name"]]):
        seen: dict[tuple[str, str], int] = {}
        for line in record.get("lines", [record]):
            work = (line["name"], line["peer"])
            seen[work] = seen.get(work, -1) + 1
            row = rows.setdefault((record["name"], *work, seen[work]), {})
            row[_machine.short(record["machine"])] = {**line, "old": "note" in record}
    return rows


def table(records: list[Record], reasons: Goals) -> str:
    """A row for each goal: the peer, the goal, and what each machine took."""
    machines = sorted({_machine.short(record["machine"]) for record in records})
    head = f"| work | peer | goal | {' | '.join(machines)} | reason for the goal |"
    text = [head, f"| --- | --- | ---: |{' --- |' * (len(machines) + 1)}"]
    for (benchmark, name, peer, _), row in lines_of(records).items():
        newest = next(iter(row.values()))
        cells = [cell(row[m], goal(newest)) if m in row else "" for m in machines]
        reason = reasons[benchmark][row_name(newest)]
        peer = "" if peer == "limit" else peer
        text.append(f"| {name} | {peer} | {goal(newest)} | {' | '.join(cells)} | {reason} |")
    return "\n".join(text)


def goal(line: Line) -> str:
    """What is to be reached: a limit, or how many times as long the peer must take."""
    if line["peer"] == "limit":
        return f"≤ {number(line['peer_value'])} {line['unit']}".strip()
    return f"≥ {line['goal']:.2f}×" if isinstance(line["goal"], int | float) else ""


def cell(line: Line, usual: str) -> str:
    """Ours, the ratio with its range, and whether its goal was met; the goal if it was another."""
    parts = [f"{number(line['value'])} {line['unit']}".strip()]
    if line["peer"] != "limit":
        low, high = line.get("range", (line["ratio"], line["ratio"]))
        spread = "" if low == high else f" ({low:.2f} to {high:.2f})"
        parts.append(f"{line['ratio']:.2f}×{spread}")
    if goal(line) != usual:
        parts.append(goal(line))
    return ", ".join([*parts, "met" if line["met"] else "**missed**"]) + " †" * line["old"]


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# --- what was missed ---------------------------------------------------------------------------


def divided(records: list[Record]) -> list[str]:
    """The goals that one machine meets and another misses, by the same program."""
    found = []
    records = [record for record in records if "note" not in record]
    for (_, name, peer, _), row in lines_of(records).items():
        met = [machine for machine, line in row.items() if line["met"]]
        if met and len(met) < len(row):
            beside = "" if peer == "limit" else f" beside {peer}"
            found.append(f"- **{name}**{beside}: met on {'; '.join(sorted(met))} only")
    return ["## Met on some machines only", "", *found, ""] if found else []


def missed(records: list[Record]) -> list[str]:
    """What was missed, by how much, and why as far as it is known (missed.toml)."""
    why = tomllib.loads((ROOT / "benchmarks/missed.toml").read_text())
    found = []
    records = [record for record in records if "note" not in record]
    for name in dict.fromkeys(record["name"] for record in records):
        of_name = [record for record in records if record["name"] == name]
        lines = [
            f"- **{line['name']}** ({_machine.short(record['machine'])}): {far(line)}"
            for record in of_name
            for line in record.get("lines", [record])
            if not line["met"]
        ]
        found += lines
        if lines and (known := why.get(name)):
            found += ["", known, ""]
    return ["## Missed", "", *found] if found else ["Every goal was met."]


def far(line: Line) -> str:
    """By how much a goal is missed."""
    if line["peer"] == "limit":
        return f"{number(line['value'])} {line['unit']}, not {number(line['peer_value'])}"
    low, high = line.get("range", (line["ratio"], line["ratio"]))
    return f"{low:.2f} to {high:.2f} times {line['peer']}, not {line['goal']:.2f}"
