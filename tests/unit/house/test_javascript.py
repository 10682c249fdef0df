"""The browser parts' JavaScript: tested in node, type-checked, linted and formatted.

`npm install --no-save --no-package-lock` brings the tools. Where node or a tool is missing the test
is skipped with the reason; in continuous integration that is a failure.
"""

import os
import shutil
import subprocess

import pytest

from contrastive_core.base.storage import ROOT

COMPONENTS = ROOT / "contrastive_lab" / "components"
TOOLS = {"tsc": ["--project", "."], "eslint": ["."], "prettier": ["--check", "--log-level", "warn", "."]}


def missing(what: str) -> None:
    """Skip, or fail in continuous integration."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is not installed")


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_node_tests_pass() -> None:
    node = shutil.which("node")
    if node is None:
        missing("node")
    run(str(node), "--test", "tests/js/")


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_are_content(tool: str) -> None:
    path = ROOT / "node_modules" / ".bin" / tool
    if shutil.which("node") is None or not path.exists():
        missing(tool)
    run(str(path), *TOOLS[tool])


def test_lines_of_scripts_and_styles_are_short() -> None:
    for path in [*COMPONENTS.rglob("*.js"), *COMPONENTS.rglob("*.css")]:
        longest = max(len(line) for line in path.read_text("utf-8").splitlines())
        assert longest <= 120, path.name
