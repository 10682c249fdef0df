"""The output that a tutorial prints below a command is what the command prints; "…" stands for anything."""

import os
import re
import shlex
import subprocess
import sys

import pytest

from contrastive_core.base.storage import ROOT

BLOCK = re.compile(r"(?ms)^```(\w*)\n(.*?)^```")
EXAMPLE = "examples/watch_a_loop.py"
# The mistakes that the tutorial of one's own loop plants, by a word of the output that it shows below.
MISTAKES = {
    "τ is applied twice": ("z @ z.T / temperature", "z @ z.T / temperature / temperature"),
    "side 2": (
        "a, b = encoder(augment(images[index])), encoder(augment(images[index]))",
        "a, b = encoder(augment(images[index])), encoder(augment(images[index])).detach()",
    ),
    "no known fault": ("roll(n)", "roll(1)"),
}


def examples(page):
    """Commands (str) with the output (str) that the page shows of them, and the files that the page tells to save."""
    command, files, found = "", {}, []
    for language, text in BLOCK.findall(page.read_text("utf-8")):
        if language == "":
            command = text.splitlines()[0]
        elif language == "toml":
            files["digits-tau.toml"] = text
        elif language == "text":
            found.append((command, text, files))
    return found


CASES = [
    pytest.param(*example, id=f"{page.stem}-{i}")
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md"))
    for i, example in enumerate(examples(page))
]


def test_each_tutorial_with_commands_shows_output():
    assert {param.id.rsplit("-", 1)[0] for param in CASES} >= {
        "choose_settings",
        "own_loop",
        "two_towers",
        "wrong_labels",
    }


@pytest.mark.parametrize(("command", "shown", "files"), CASES)
def test_output(tmp_path, command, shown, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    words = shlex.split(command.removeprefix("uv run "))
    if words[0] == "python":
        script = (ROOT / words[1]).read_text("utf-8")
        for about, (right, wrong) in MISTAKES.items():
            if about in shown:
                assert right in script
                script = script.replace(right, wrong)
        words = [sys.executable, "-c", script]
    else:
        words = [sys.executable, "-m", "contrastive_core", *words[1:]]
    environment = {**os.environ, "CONTRASTIVE_LAB_RUNS": str(tmp_path / "runs"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    printed = " ".join((done.stderr + done.stdout).split())  # a note comes before the answer
    for part in re.split(r"…", shown):
        assert " ".join(part.split()) in printed, done.stdout + done.stderr
