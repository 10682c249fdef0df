"""Where things lie: in a checkout, once installed, and where the environment says."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from contrastive_core.base import paths

HOMES = ("CONTRASTIVE_LAB_HOME", "CONTRASTIVE_LAB_RUNS")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """paths.py as a wheel puts it: no app.py and no pyproject.toml beside the package."""
    for name in HOMES:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "user data ü"))
    site = tmp_path / "site-packages"
    base = site / "installed_core" / "base"
    base.mkdir(parents=True)
    for folder in (base.parent, base):
        (folder / "__init__.py").touch()
    (base / "paths.py").write_text(Path(paths.__file__).read_text())
    monkeypatch.syspath_prepend(str(site))
    yield importlib.import_module("installed_core.base.paths")
    for name in ("installed_core.base.paths", "installed_core.base", "installed_core"):
        sys.modules.pop(name, None)


def test_a_checkout_keeps_everything_in_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HOMES:
        monkeypatch.delenv(name)
    assert paths.is_checkout()
    assert paths.BUNDLE == paths.ROOT
    assert paths.runs_home() == paths.ROOT / "checkpoints" / "runs"
    assert paths.data_home() == paths.ROOT / ".cache"


def test_installed_it_writes_to_the_users_data_folder(installed: ModuleType, tmp_path: Path) -> None:
    assert not installed.is_checkout()
    site = tmp_path / "site-packages"
    assert site / "contrastive_lab" / "bundle" == installed.BUNDLE
    homes = [installed.runs_home(), installed.data_home()]
    assert [home.name for home in homes] == ["runs", "cache"]
    assert {home.parent.name for home in homes} == {"contrastive-lab"}
    assert not any(home.is_relative_to(installed.ROOT) for home in homes)
    if sys.platform == "linux":
        assert all(home.is_relative_to(tmp_path / "user data ü") for home in homes)


def test_the_environment_goes_before(installed: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HOMES:
        monkeypatch.setenv(name, "/somewhere/else")
    assert installed.runs_home() == installed.data_home() == Path("/somewhere/else")
