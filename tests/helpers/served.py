"""A real browser and a real server for tests: Chromium without a window, Streamlit on 127.0.0.1.

`page` is a blank page; `serve(script)` starts Streamlit with a script and gives its address. Where
there is no browser the test is skipped with the reason (in CI a skip is a failure). A plugin that
tests/conftest.py names, so that all levels share one browser and one server.
"""

import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import SLOW

from benchmarks import browser as real
from contrastive_lab.desktop import serving

FAILED = pytest.StashKey[bool]()
SERVED: list[dict[str, str]] = []  # homes of the servers at work: what a page began ends with it


def pytest_itemcollected(item: pytest.Item) -> None:
    if "browser" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.browser)
        item.add_marker(pytest.mark.flaky(reruns=1))  # see CONTRIBUTING.md


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = report.failed and "browser" in getattr(item, "fixturenames", ())
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Homes and servers end with a test that failed: the next one, or its second try, begins with others."""
    if item.stash.get(FAILED, False):
        item.session._setupstate.teardown_exact(item.session)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if real.find_browser() is None:
        pytest.skip(f"no browser: none of {', '.join(serving.NAMES)} is installed")
    pytest.importorskip("playwright", reason="playwright is not installed")
    with real.chromium() as found:
        yield found


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page whose errors fail the test, and which reaches nothing but this computer."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(SLOW)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    for homes in SERVED:
        real.end_tasks(homes)
    assert not errors, errors


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, made_catalog: Any) -> Path:
    """A home of an app that was opened before: digits are decoded, and the catalog is made."""
    from contrastive_core.data import datasets

    home = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTRASTIVE_LAB_HOME", str(home))
        for split in datasets.SPLITS:
            datasets.load("digits", split)
    return home


def fill(home: Path, prepared: Path) -> None:
    """Copy what a home lacks; a file that is there may be open."""
    for path in prepared.rglob("*"):
        target = home / path.relative_to(prepared)
        if path.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


@contextmanager
def servers(folders: pytest.TempPathFactory, prepared: Path) -> Iterator[Callable[..., str]]:
    """Give `start(script, *arguments)`, which starts Streamlit and returns its address."""
    with ExitStack() as stack:

        def start(script: Path, *arguments: str, is_new: bool = False, **options: Any) -> str:
            home = folders.mktemp("server")
            homes = {**real.homes_in(home), **(options.get("environment") or {})}
            if not is_new:
                fill(Path(homes["CONTRASTIVE_LAB_HOME"]), prepared)
            SERVED.append(homes)
            stack.callback(SERVED.remove, homes)
            return stack.enter_context(real.serving(script, home, *arguments, **options))

        yield start


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory, prepared: Path) -> Iterator[Callable[..., str]]:
    """serve(script, *arguments) starts Streamlit with a script; returns the address.

    The server has homes of its own, unless `environment` names others. `is_new`: nothing was
    prepared in them.
    """
    with servers(tmp_path_factory, prepared) as start:
        yield start


@pytest.fixture(scope="session")
def script_pages(tmp_path_factory: pytest.TempPathFactory, prepared: Path) -> Iterator[str]:
    """The parts on pages of their own (script_pages.py); one server for each worker of pytest."""
    with servers(tmp_path_factory, prepared) as start:
        yield start(real.ROOT / "tests" / "browser" / "script_pages.py")


@pytest.fixture(scope="session")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of runs with a sweep, runs that wait, and one in the bin (see visits.py)."""
    from visits import filled

    home = tmp_path_factory.mktemp("runs")
    with filled(home):
        yield home


@pytest.fixture(scope="session")
def filled_app(filled_home: Path, tmp_path_factory: pytest.TempPathFactory, prepared: Path) -> Iterator[str]:
    """The app with these runs; one for each worker of pytest."""
    with servers(tmp_path_factory, prepared) as start:
        yield start(real.ROOT / "app.py", environment={"CONTRASTIVE_LAB_RUNS": str(filled_home)})
