"""Every command of the README in a fresh clone, with nothing but what the README told its reader to install."""

import os
import re
import shlex
import subprocess
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from contrastive_core.base.storage import ROOT

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"(?ms)^```(\w*)\n(.*?)^```", README)
COMMANDS = re.findall(r"uv run contrastive-lab[^`\n#]*", README)
OPENS = {"uv run contrastive-lab", "uv run contrastive-lab vectors.npz"}  # commands that open a window
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S*")
OTHERS_FILES = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A clone of the last commit with files of vectors in it, and the environment of its user."""
    place, home = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("home")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CONTRASTIVE_LAB", "VIRTUAL_ENV", "PYTHON"))}
    environment = {**kept, **OTHERS_FILES, "CONTRASTIVE_LAB_HOME": str(home)}
    first = next(line for _, text in BLOCKS for line in text.splitlines() if line.startswith("git clone"))
    line = first.replace("REPOSITORY", f"--depth 1 file://{ROOT}")
    subprocess.run(line, shell=True, check=True, cwd=place, env=environment)
    checkout = place / "contrastive-lab"
    rows = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    for name, shift in (("vectors", 0), ("a", 1), ("b", 2)):
        np.savez(
            checkout / f"{name}.npz", features=rows + shift * (np.arange(60) % 3)[:, None], label=np.arange(60) % 3
        )
    return checkout, environment


def test_the_readme_shows_the_commands_that_are_run() -> None:
    assert {*OPENS, "uv run contrastive-lab playground --out page.html"} <= set(COMMANDS)


def test_every_command_of_the_readme(clone: tuple[Path, dict[str, str]]) -> None:
    checkout, environment = clone
    for command in dict.fromkeys(COMMANDS):
        if command in OPENS:
            assert opened(shlex.split(command), checkout, environment) == 200
        else:
            ended = subprocess.run(shlex.split(command), cwd=checkout, env=environment, capture_output=True, text=True)
            assert ended.returncode == 0, (command, ended.stdout[-500:], ended.stderr[-2000:])
    (script,) = (text for language, text in BLOCKS if language == "python")
    subprocess.run(["uv", "run", "python", "-c", script], cwd=checkout, env=environment, check=True)


def opened(words: list[str], checkout: Path, environment: dict[str, str]) -> int:
    """Return the answer's status at the address that a start without its window prints."""
    with subprocess.Popen(
        [*words, "--no-window"], cwd=checkout, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines: list[str] = []
        try:
            for line in process.stderr:
                lines.append(line)
                if found := ADDRESS.search(line):
                    with urllib.request.urlopen(found[0]) as answer:
                        return int(answer.status)
        finally:
            process.terminate()
    raise AssertionError("".join(lines))
