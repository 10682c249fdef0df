"""Each command that README and docs print is parsed: the command, the subcommand and its options exist."""

import re
import shlex
import tomllib

import pytest
from cases import cases

from contrastive_core.base.storage import ROOT
from contrastive_core.cli import main as core
from contrastive_lab.desktop import command

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if not {"generated", "_build"} & set(path.parts)),
    *sorted((ROOT / "sweeps").glob("*.toml")),
    ROOT / "checkpoints" / "shipped.toml",
]
SHELL = re.compile(r"(?ms)^ *```(?:bash|console)?\n(.*?)^ *```")
INLINE = re.compile(r"`((?:uv run |contrastive-lab |python )[^`\n]+)`")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
PLACEHOLDERS = {"COMMAND"}


def printed(path):
    """The command lines of a page, without comments and with their continuations."""
    text = path.read_text("utf-8")
    if path.suffix == ".toml":
        return [line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#   ")]
    blocks = "\n".join(SHELL.findall(text)).replace("\\\n", " ")
    lines = [line.strip() for line in blocks.splitlines()] + INLINE.findall(text)
    return [part for line in lines for part in line.split(" && ")]


def words_of(line):
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a sentence of another tool's output
        return []


COMMANDS = sorted({(path.relative_to(ROOT).as_posix(), line) for path in PAGES for line in printed(path)})


def without_uv(words):
    """A command behind `uv run` and its options. Each extra is one that the project has."""
    if words[:2] != ["uv", "run"]:
        return words
    words = words[2:]
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        if flag == "--extra":
            assert words.pop(0) in EXTRAS
    return words


def programs(name):
    found = [(page, without_uv(words)) for page, line in COMMANDS if (words := words_of(line))]
    return [(page, words[1:]) for page, words in found if words and words[0] == name]


def parse(arguments):
    """What `contrastive-lab` does with these arguments, up to running it."""
    is_command = arguments and arguments[0] in core.COMMANDS
    return (core.parser("contrastive-lab") if is_command else command.parser()).parse_args(arguments)


LAB = [(page, words) for page, words in programs("contrastive-lab") if not PLACEHOLDERS & set(words)]


def test_commands_are_found():
    pages = {page for page, _ in LAB}
    assert len(LAB) > 70
    assert {"README.md", "docs/zh.md", "docs/guides/image_folder.md", "sweeps/temperature.toml"} <= pages


@cases(("page", "arguments"), LAB)
def test_command_is_parsed(page, arguments):
    if "--version" in arguments:
        with pytest.raises(SystemExit, match=r"^0$"):
            parse(arguments)
    else:
        parse(arguments)


@pytest.mark.parametrize("arguments", [["train", "--epoch-count", "2"], ["evaluate"], ["--no-such"], ["a", "b"]])
def test_a_wrong_command_is_refused(arguments):
    with pytest.raises(SystemExit):
        parse(arguments)


def test_scripts_and_modules_exist():
    """`python FILE` and `python -m MODULE`; the options of a module stand in its source."""
    missing = set()
    for page, words in programs("python"):
        if words[0] != "-m":
            missing |= {f"{page}: {word}" for word in words[:1] if not (ROOT / word).is_file()}
            continue
        place = ROOT / words[1].replace(".", "/")
        if place.parts[len(ROOT.parts)] not in ("benchmarks", "docs", "contrastive_core", "contrastive_lab"):
            continue
        file = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__main__.py"
        source = file.read_text("utf-8") if file.is_file() else ""
        missing |= {f"{page}: {words[1]}"} if not source else set()
        if words[1] != "contrastive_core":
            missing |= {f"{page}: {words[1]} {w}" for w in words if w.startswith("--") and f'"{w}"' not in source}
    assert not missing


def test_paths_of_tests_exist():
    paths = [word for _, words in programs("pytest") for word in words if word.startswith("tests/")]
    assert len(paths) > 3
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_tools_environment_is_enough():
    """An installed tool has no Python of its own to call: pages name the command, but where they say so."""
    old = {page for page, line in COMMANDS if line.startswith("python -m contrastive_core")}
    assert old == {"docs/command_line.md"}


def test_the_readme_begins_with_the_clone():
    first = next(line for line in printed(ROOT / "README.md"))
    assert first.startswith("git clone ")
