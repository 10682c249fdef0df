"""What every test shares: few threads, homes in temporary folders, no skipped browser in CI."""

import os
import sys
from collections.abc import Sequence
from itertools import zip_longest

# Small problems run slower on many threads, and the workers of pytest share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # a waiting thread leaves its core to others

import pytest

# uv compiles nothing when it installs: where no bytecode may be written, every process of every
# test would compile torch anew, which takes longer than to import it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

pytest_plugins = ["served"]  # tests/helpers/served.py: the browser and the servers of the app

# The slowest files first, so that no worker is left with one of them when the other has ended. Browser
# tests mostly wait, other tests compute: their files take turns, so that a core has something to do.
BROWSER = (
    "release/test_every_page.py",
    "release/test_installed.py",
    "release/test_runs_page.py",
    "release/test_long_import.py",
    "browser/test_samples_page.py",
    "browser/test_lessons_by_hand.py",
    "browser/",
)
OTHER = (
    "release/test_distributed",
    "release/",
    "process/test_kills.py",
    "process/",
    "unit/house/",
    "unit/sweeps/",
    "unit/train/",
    "app/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    browser: dict[str, list[pytest.Item]] = {}
    other: dict[str, list[pytest.Item]] = {}
    for item in items:
        kind = browser if item.get_closest_marker("browser") else other
        kind.setdefault(item.path.as_posix(), []).append(item)
    first, second = slowest_first(browser, BROWSER), slowest_first(other, OTHER)
    items[:] = [item for pair in zip_longest(first, second, fillvalue=()) for file in pair for item in file]


def slowest_first(files: dict[str, list[pytest.Item]], slow: Sequence[str]) -> list[list[pytest.Item]]:
    """The tests of each file, files in the order of these parts of their paths, then all others."""

    def rank(path: str) -> int:
        return next((i for i, part in enumerate(slow) if f"tests/{part}" in path), len(slow))

    return [files[path] for path in sorted(files, key=rank)]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """In CI a browser test that skips is a failure: a missing browser must not pass unseen."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("CI") and item.get_closest_marker("browser"):
        report.outcome = "failed"
        report.longrepr = f"a browser test may not skip in CI: {report.longrepr}"


@pytest.fixture(autouse=True)
def homes(tmp_path, monkeypatch):
    """Runs and caches go to temporary folders, never into the checkout."""
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path / "runs"))
    return tmp_path


@pytest.fixture(scope="session")
def made_catalog():
    """Pages find what is registered, and need not wait for a process that reads it."""
    from contrastive_core.engine import catalog

    return catalog.stored() or catalog.make()


@pytest.fixture(autouse=True)
def asked_questions():
    """No page shows what an earlier test asked."""
    yield
    if jobs := sys.modules.get("contrastive_core.engine.jobs"):
        jobs._asked.clear()


@pytest.fixture(autouse=True)
def main_module():
    """Streamlit's test runner puts its script in place of `__main__`, which children import."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


def pytest_terminal_summary(terminalreporter):
    """How many hostile files were tried, wherever the workers tried them; and why a browser test
    was tried once more, so that what passes then is not hidden."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.write_line(f"{report.nodeid}: {report.longreprtext[-2000:]}")
    reports = terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
    counts = [v for r in reports for k, v in r.user_properties if k == "hostile"]
    if counts:
        refused, read = (sum(count[i] for count in counts) for i in (1, 2))
        kinds = {name: sum(a + b for other, a, b in counts if other == name) for name, *_ in counts}
        terminalreporter.write_line(
            f"hostile cases: {refused + read:,} ({refused:,} refused with a sentence, {read:,} "
            f"read): {', '.join(f'{name} {count:,}' for name, count in kinds.items())}"
        )
