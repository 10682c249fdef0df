"""The packages that the server runs on have one version, those of other packages included."""

import tomllib
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from contrastive_core.base.storage import ROOT

UV = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]
DIRECT = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
PINS = [Requirement(line) for line in [*DIRECT, *UV["constraint-dependencies"]] if not line.startswith("#")]


def needed(name: str, known: set[str]) -> set[str]:
    """The installed packages below a package, itself included."""
    if name not in known:
        known.add(name)
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed(canonicalize_name(requirement.name), known)
    return known


def test_the_server_and_what_it_needs_is_pinned_to_what_is_tested() -> None:
    versions = {canonicalize_name(pin.name): str(pin.specifier) for pin in PINS}
    names = needed("streamlit", set()) | needed("uvicorn", set())
    assert {"h11", "click", "anyio", "websockets"} <= names
    assert {name: versions.get(name) for name in names} == {name: f"=={metadata.version(name)}" for name in names}


def test_a_pin_is_one_version() -> None:
    assert len(PINS) > 150
    assert all(str(pin.specifier).startswith("==") and pin.url is None for pin in PINS)
