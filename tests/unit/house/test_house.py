"""The house rules: imports run one way, rooms stay small, lint and types hold."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from contrastive_core.base.storage import ROOT

CORE = ROOT / "contrastive_core"

# Bottom to top: a package may import from itself and from packages before it, never after it.
ORDER = """
base pairs ops data losses models methods runs spaces metrics train compare exchange samples lab sweeps recording
advice engine cli
""".split()

HEAVY = ("torch", "torchvision", "sklearn", "scipy", "umap", "plotly", "pandas", "faiss")


def modules(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


@cache
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


def against(order: list[str], package: Path) -> list[str]:
    """What a module imports of its own package from further up than where it stands."""
    found = []
    for path in modules(package):
        own = path.relative_to(package).parts[0].removesuffix(".py")
        if own in ("__init__", "__main__"):
            continue
        assert own in order, f"{own} has no place in the order"
        below = order[: order.index(own) + 1]
        above = {name for name in starts(imports(path), package.name) if name.split(".")[1] not in below}
        found += [f"{path.relative_to(ROOT)} imports {name}" for name in sorted(above)]
    return found


def test_imports_run_one_way() -> None:
    assert not against(ORDER, CORE)


def test_core_sees_neither_streamlit_nor_the_app() -> None:
    assert not [str(path) for path in modules(CORE) if starts(imports(path), "streamlit", "contrastive_lab")]


def test_only_the_app_sees_streamlit() -> None:
    tracked = subprocess.check_output(["git", "ls-files", "*.py"], cwd=ROOT, text=True).split()
    others = {f for f in tracked if f.split("/")[0] not in ("contrastive_lab", "pages", "tests")}
    seers = {f for f in others if starts(imports(ROOT / f), "streamlit")}
    assert seers == {"app.py"}


def test_notebooks_and_reports_import_no_streamlit() -> None:
    """Imported for real, in one process: they run where no app is."""
    names = "contrastive_lab.widgets, contrastive_lab.report.document"
    code = f"import sys, {names}\nif 'streamlit' in sys.modules: print('streamlit')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


# The app, bottom to top, by the same rule.
LAB_ORDER = """
locale texts format setting_names query_params path_input load_vectors stage components figures loss_setting
widgets cache state progress pictures forming_map embedding_map recordings score_strip methods train activity samples
compare report playground loss_lab home explore runs desktop server __main__
""".split()


def test_imports_of_the_app_run_one_way() -> None:
    assert not against(LAB_ORDER, ROOT / "contrastive_lab")


# A loss and its method share the name of their paper; settings belong to a method.
SHARED_CLASS_NAMES = {"Metric", "SupCon", "Settings"}


def test_a_class_name_exists_once() -> None:
    seen: dict[str, Path] = {}
    for path in [*modules(CORE), *modules(ROOT / "contrastive_lab")]:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in SHARED_CLASS_NAMES:
                assert node.name not in seen, f"{node.name} in {path} and {seen[node.name]}"
                seen[node.name] = path


# Parts of the app that run outside its server: the commands, notebooks, a report's writer.
OUTSIDE_THE_SERVER = ("desktop/", "widgets/", "playground/file.py", "report/document.py", "report/contents.py")


def test_the_server_never_imports_torch() -> None:
    """Everything that the app imports, imported in a process of its own: the app starts quickly and stays small."""
    lab = ROOT / "contrastive_lab"
    parts = [path for path in modules(lab) if not path.relative_to(lab).as_posix().startswith(OUTSIDE_THE_SERVER)]
    files = [*parts, *modules(ROOT / "pages"), ROOT / "app.py"]
    names = {name for path in files for name in starts(imports(path), "contrastive_core")}
    code = f"""
import importlib, importlib.util, sys
for name in {sorted(names)!r}:  # a name is a module, or of one
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        found = None
    importlib.import_module(name if found else name.rpartition(".")[0])
print(*(m for m in {HEAVY!r} if m in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_the_command_tells_its_address_before_streamlit_is_loaded() -> None:
    code = f"import contrastive_lab.desktop.command, sys; print(*({{'streamlit', *{HEAVY!r}}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


@pytest.mark.parametrize("folder", ["pages", "contrastive_lab"])
def test_the_app_does_no_tensor_maths(folder: str) -> None:
    for path in modules(ROOT / folder):
        assert not starts(imports(path), "torch", "torchvision", "sklearn", "umap"), path.name


def test_what_an_error_says_is_no_markup() -> None:
    """An error names files and classes: pages quote it, as `format.plain` does."""
    shown = re.compile(r"\.(error|warning|info|caption|markdown|success|toast)\(\s*(str\(|f?\"\{)?error\b")
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
    "command", [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)], ids=lambda c: "-".join(c[:2])
)
def test_lint_and_types(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
