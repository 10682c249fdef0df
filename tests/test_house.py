"""The house rules: imports run one way, rooms stay small, lint and types hold."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "contrastive_core"

# Top to bottom: a module may import from its own room and from rooms above it, never from below.
ORDER = """
registry config files locks store types distributed one_batch sharded sampling embedding_set
readers attached similarity lanes tiles tiled pairs losses
device encoders memory pixels views optim methods shapes images vision_sets data curation
neighbours metrics projection alike paired run_folder runs checkpoints
state journal monitor prepare rehearse foreign reasons train
embed evaluate published judge present compare figures class_losses findings sample_losses
sample_table sample_time tabulate why
spaces lab_memory lab_batch lab answers atlas costs marks jobs asking waiting_files waiting filing
export subjects samples answering flow
catalogue sweep_cells sweep sweeping sweep_figures integrity output commands inspection __main__
""".split()

TORCH_FREE = """
registry config sampling sweep sweeping sweep_figures export embedding_set files locks store
run_folder runs filing jobs waiting waiting_files integrity
figures present lab lab_batch lab_memory flow spaces answers asking alike paired costs atlas
attached sample_table marks subjects catalogue
""".split()


def rooms(package: Path = CORE) -> list[Path]:
    return sorted(package.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(CORE).parts[0].removesuffix(".py")


def imports(path: Path, top_level: bool = False) -> set[str]:
    """Dotted names that a file imports; only those that run at import time if `top_level`."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level else list(ast.walk(tree))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def starts(names: set[str], *packages: str) -> set[str]:
    return {n for n in names if n.split(".")[0] in packages}


@pytest.mark.parametrize("path", rooms(), ids=lambda p: str(p.relative_to(CORE)))
def test_imports_run_one_way(path: Path) -> None:
    own = room_of(path)
    if own == "__init__":
        return
    assert own in ORDER, f"{own} has no place in the order of rooms"
    for name in starts(imports(path), "contrastive_core"):
        parts = name.split(".")
        if len(parts) < 2 or parts[1] == own or parts[1] not in ORDER:
            continue
        assert ORDER.index(parts[1]) < ORDER.index(own), f"{own} may not import {parts[1]}"


@pytest.mark.parametrize("path", rooms(), ids=lambda p: str(p.relative_to(CORE)))
def test_core_never_sees_streamlit(path: Path) -> None:
    assert not starts(imports(path), "streamlit")


@pytest.mark.parametrize("room", [r for r in TORCH_FREE if (CORE / f"{r}.py").exists()])
def test_torch_free_rooms(room: str) -> None:
    path = CORE / f"{room}.py"
    heavy = starts(imports(path, top_level=True), "torch", "sklearn", "umap", "plotly", "pandas")
    assert not heavy


def test_pages_see_neither_torch_nor_the_core() -> None:
    for path in [*(ROOT / "pages").glob("*.py"), *(ROOT / "layout").glob("*.py")]:
        assert not starts(imports(path), "torch", "sklearn", "umap"), path.name
    for path in (ROOT / "components").rglob("*.py"):
        assert not starts(imports(path), "torch", "contrastive_core"), path.name


def test_files_stay_small() -> None:
    files = subprocess.check_output(["git", "ls-files", "*.py", "*.js"], cwd=ROOT, text=True)
    long = {f: n for f in files.split() if (n := len((ROOT / f).read_text().splitlines())) > 400}
    assert not long


def test_every_registered_file_is_named_by_a_test() -> None:
    texts = "\n".join(p.read_text() for p in (ROOT / "tests").rglob("*.py"))
    for package in ("losses", "methods", "metrics"):
        for path in (CORE / package).glob("[a-z]*.py"):
            assert path.stem in texts, f"no test names {package}/{path.name}"


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)],
    ids=lambda c: "-".join(c[:2]),
)
def test_lint_and_types(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
