"""RESULTS.md: a column for each machine, and what one machine only reaches is seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import _machine, _report

AMD = "AMD EPYC, 2 cores, Linux, Python 3.11.7"
INTEL = "Intel(R) Xeon(R) Processor, 4 cores, Linux, Python 3.11.7"


def record(machine: str, ratio: float, **more: Any) -> dict[str, Any]:
    line = {
        "name": "all triplets", "value": 4.6, "unit": "ms", "peer": "the peer", "peer_value": 9.2,
        "ratio": ratio, "range": [ratio, ratio], "goal": 2.0, "met": ratio >= 2,
    }  # fmt: skip
    about = {"text": [f"printed on {machine}"], "date": "2026-11-22", "load_before": 0.1}
    return {**line, "lines": [line], **about, "machine": machine, "versions": {}, **more}


def written(folder: Path, *records: dict[str, Any]) -> list[_report.Record]:
    for one in records:
        path = folder / _machine.folder(one["machine"]) / "triplet.json"
        path.parent.mkdir()
        path.write_text(json.dumps(one))
    return _report.read(folder, ("losses", "triplet"))


def test_a_machine_is_its_processor_and_its_cores() -> None:
    assert _machine.folder(INTEL) == "intel-xeon-4-cores"
    assert (
        _machine.short("Intel(R) Core(TM) i7 CPU @ 2.80GHz, 1 core, x") == "Intel Core i7, 1 core"
    )
    assert _machine.about().split(", ")[1].split()[0] == str(_machine.cores())


def test_each_machine_has_a_column_and_its_own_output(tmp_path: Path) -> None:
    text = _report.report(written(tmp_path, record(AMD, 1.5), record(INTEL, 2.5)))
    assert "| work | peer | goal | AMD EPYC, 2 cores | Intel Xeon, 4 cores |" in text
    assert (
        "| all triplets | the peer | ≥ 2.00× | 4.6 ms, 1.50×, **missed** | 4.6 ms, 2.50×, met |"
        in text
    )
    assert "- **all triplets** beside the peer: met on Intel Xeon, 4 cores only" in text
    assert f"printed on {AMD}" in text
    assert f"printed on {INTEL}" in text


def test_an_older_program_is_marked_and_not_held_against_a_processor(tmp_path: Path) -> None:
    text = _report.report(written(tmp_path, record(AMD, 1.5, note="Kept"), record(INTEL, 2.5)))
    assert "4.6 ms, 1.50×, **missed** † |" in text
    assert "Met on some machines only" not in text
    assert "Every goal was met." in text


def test_a_core_that_was_taken_away_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3}, raising=False)
    assert ", 1 core, " in _machine.about()


def test_results_are_what_the_records_say() -> None:
    from benchmarks.__main__ import NAMES, REPORT, RESULTS

    assert REPORT.read_text() == _report.report(_report.read(RESULTS, NAMES))
