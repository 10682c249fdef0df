"""The house rules: imports run one way, rooms stay small, lint and types hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from contrastive_core.paths import ROOT

CORE = ROOT / "contrastive_core"

# Bottom to top: a package may import from itself and from packages before it, never after it.
ORDER = """
errors paths progress registry device storage distributed pairs ops data losses models methods runs
embeddings metrics training evaluation importers exporters jobs samples loss_lab sweeps recording
advice catalog cli
""".split()

# What pages pass through: importing any of it must not import torch or its like.
TORCH_FREE = """
errors paths progress registry storage distributed data embeddings runs jobs samples
evaluation storage.atomic storage.lock storage.records storage.shapes storage.tables
storage.regular storage.limited distributed.partition data.pictures data.folder_preview
cli.main cli.analyses cli.analyses.previews
embeddings.open_vectors embeddings.nearest embeddings.pca embeddings.csv_files
embeddings.parquet_files embeddings.table_columns
data.subfolders data.datasets data.batch_sampler embeddings.embedding_set embeddings.file_formats
embeddings.label_files
embeddings.attached_images embeddings.kept_vectors embeddings.splits embeddings.ref
embeddings.cache runs.run runs.catalog runs.formats
runs.recorded runs.verify runs.cost runs.export_weights runs.metrics_reader training.config
evaluation.best_setting ops.intervals sweeps.cells sweeps.verdict runs.watched_sample
evaluation.comparison evaluation.compare evaluation.representation_similarity
evaluation.paired_tests data.recipe
jobs.process jobs.task jobs.at_once training.image_size
jobs.activity jobs.training jobs.results jobs.queue jobs.queue_files jobs.manage samples.table
samples.annotations samples.losses samples.request loss_lab.view
loss_lab.batch loss_lab.memory sweeps.spec sweeps.grid sweeps.runner sweeps.plots catalog
""".split()
HEAVY = ("torch", "torchvision", "sklearn", "umap", "plotly", "pandas")


def modules(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Dotted names that a file imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def starts(names: set[str], *packages: str) -> set[str]:
    return {n for n in names if n.split(".")[0] in packages}


@pytest.mark.parametrize("path", modules(CORE), ids=lambda p: str(p.relative_to(CORE)))
def test_imports_run_one_way(path: Path) -> None:
    own = path.relative_to(CORE).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    assert own in ORDER, f"{own} has no place in the order of packages"
    for name in starts(imports(path), "contrastive_core"):
        package = name.split(".")[1]
        if package != own:
            assert package in ORDER[: ORDER.index(own)], f"{own} may not import {package}"


@pytest.mark.parametrize("path", modules(CORE), ids=lambda p: str(p.relative_to(CORE)))
def test_core_sees_neither_streamlit_nor_the_app(path: Path) -> None:
    assert not starts(imports(path), "streamlit", "contrastive_lab")


def test_only_the_app_sees_streamlit() -> None:
    tracked = subprocess.check_output(["git", "ls-files", "*.py"], cwd=ROOT, text=True).split()
    others = {f for f in tracked if f.split("/")[0] not in ("contrastive_lab", "pages", "tests")}
    seers = {f for f in others if starts(imports(ROOT / f), "streamlit")}
    assert seers == {"app.py"}


def test_notebooks_and_reports_import_no_streamlit() -> None:
    """Imported for real, in one process: they run where no app is."""
    names = (
        "contrastive_lab.widgets, contrastive_lab.report.command, contrastive_lab.report.document"
    )
    code = f"import sys, {names}\nif 'streamlit' in sys.modules: print('streamlit')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


def test_readers_stay_torch_free() -> None:
    """Imported for real, each in turn, in one process: none of them brings torch along."""
    names = ", ".join(f"contrastive_core.{name}" for name in TORCH_FREE)
    code = f"import sys, {names}\nprint(*(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


@pytest.mark.parametrize("folder", ["pages", "contrastive_lab"])
def test_the_app_does_no_tensor_maths(folder: str) -> None:
    for path in modules(ROOT / folder):
        assert not starts(imports(path), "torch", "torchvision", "sklearn", "umap"), path.name


def test_what_an_error_says_is_no_markup() -> None:
    """An error names files and classes: pages quote it, as `format.plain` does."""
    shown = re.compile(
        r"\.(error|warning|info|caption|markdown|success|toast)\(\s*(str\(|f?\"\{)?error\b"
    )
    for folder in ("pages", "contrastive_lab"):
        for path in modules(ROOT / folder):
            assert not shown.search(path.read_text()), path.name


def test_browser_parts_see_no_library() -> None:
    for path in modules(ROOT / "contrastive_lab" / "components"):
        assert not starts(imports(path), "contrastive_core"), path.name


def test_files_stay_small() -> None:
    files = subprocess.check_output(["git", "ls-files", "*.py", "*.js"], cwd=ROOT, text=True)
    long = {f: n for f in files.split() if (n := len((ROOT / f).read_text().splitlines())) > 400}
    assert not long


def test_no_two_test_files_share_a_name() -> None:
    """pytest would stop at the second."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)


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
