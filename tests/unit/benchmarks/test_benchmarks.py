"""RESULTS.md: one machine's rows with their goals, and what each script printed."""

import json
from pathlib import Path
from typing import Any

from benchmarks import _report

AMD = "AMD EPYC, 2 cores, Linux, Python 3.11.7"
INTEL = "Intel(R) Xeon(R) Processor, 4 cores, Linux, Python 3.11.7"

GOALS = {name: {"all triplets | the peer": "a quick loss"} for name in ("losses", "triplet")}


def record(machine: str, ratio: float, **more: Any) -> dict[str, Any]:
    line = {
        "name": "all triplets",
        "value": 4.6,
        "unit": "ms",
        "peer": "the peer",
        "peer_value": 9.2,
        "ratio": ratio,
        "range": [ratio, ratio],
        "goal": 2.0,
        "met": ratio >= 2,
    }
    about = {"text": [f"printed on {machine}"], "date": "2026-11-22", "load_before": 0.1}
    return {**line, "lines": [line], **about, "machine": machine, "versions": {}, **more}


def test_a_row_of_another_machine_names_it(tmp_path: Path) -> None:
    (tmp_path / "losses.json").write_text(json.dumps(record(AMD, 2.5)))
    (tmp_path / "triplet.json").write_text(json.dumps(record(INTEL, 1.5, date="2026-11-23")))
    text = _report.report(_report.read(tmp_path, ("losses", "triplet")), GOALS)
    assert "on Intel Xeon, 4 cores, 2026-11-23; a row of another" in text
    assert "| all triplets | the peer | ≥ 2.00× | 4.6 ms, 1.50×, **missed** | a quick loss |" in text
    assert "- **all triplets**: 1.50 to 1.50 times the peer, not 2.00" in text
    assert "| 4.6 ms, 2.50×, met; AMD EPYC, 2 cores; 2026-11-22 |" in text
    assert f"printed on {INTEL}" in text


def test_results_are_what_the_records_say() -> None:
    from benchmarks.__main__ import NAMES, REPORT, RESULTS

    assert REPORT.read_text() == _report.report(_report.read(RESULTS, NAMES), _report.goals())


def test_every_goal_has_a_reason_and_a_measured_row() -> None:
    from benchmarks.__main__ import NAMES, RESULTS

    records = _report.read(RESULTS, NAMES)
    measured = {(r["name"], _report.row_name(line)) for r in records for line in r.get("lines", [r])}
    stated = {(name, row) for name, rows in _report.goals().items() for row, reason in rows.items() if reason}
    assert stated <= measured
    assert {name for name, _ in stated} == set(NAMES)
    assert len(stated) <= 60  # a table that is read in one go
