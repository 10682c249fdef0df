"""The documentation covers what the code has: public names, environment variables, error messages."""

import importlib
import inspect
import re

import pytest
from cases import cases

from contrastive_core.base.storage import ROOT

PUBLIC = [
    "contrastive_core",
    "contrastive_core.losses",
    "contrastive_core.pairs",
    "contrastive_core.methods",
    "contrastive_core.metrics",
    "contrastive_core.recording",
    "contrastive_lab.widgets",
]
NAMES = [(package, name) for package in PUBLIC for name in importlib.import_module(package).__all__]
SOURCES = "\n".join(
    path.read_text("utf-8")
    for folder in ("contrastive_core", "contrastive_lab")
    for path in (ROOT / folder).rglob("*.py")
)


@cases(("package", "name"), NAMES)
def test_public_name_is_documented(package, name):
    """With a docstring that names every argument of a function, and a place on the page of the API."""
    thing = getattr(importlib.import_module(package), name)
    text = inspect.getdoc(thing) or ""
    assert text.strip()
    if not inspect.isclass(thing):
        assert not [key for key in inspect.signature(thing).parameters if not re.search(rf"\b{key}\b", text)]
    assert name in (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")


def test_examples_of_the_api_run(tmp_path, monkeypatch):
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(tmp_path))
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    examples = re.findall(r"(?ms)^```python\n(.*?)^```", page)
    assert len(examples) == page.count("\n## ")
    for example in examples:
        exec(example, {})


def test_every_environment_variable_is_listed():
    page = (ROOT / "docs" / "reference" / "environment.md").read_text("utf-8")
    used = set(re.findall(r"CONTRASTIVE_LAB_[A-Z_]*[A-Z]", SOURCES))
    assert not {name for name in used if name not in page}


@pytest.fixture(scope="module")
def labels():
    """The catalogs of the interface as one text: English sentences and their Chinese."""
    catalogs = (ROOT / "contrastive_lab" / "locale" / "zh" / "LC_MESSAGES").glob("*.po")
    return "".join(re.sub(r'"\n"', "", path.read_text("utf-8")) for path in catalogs)


def test_glossary_has_the_words_of_the_interface(labels):
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| ([a-z][^|]+) \| ([^|]+) \|", page)
    assert len(rows) >= 60
    assert not [english for english, chinese in rows if not any(word in labels for word in chinese.split("、"))]


def test_tutorials_name_controls_that_exist(labels):
    """What a tutorial prints bold with a capital letter is a label, in the catalog that all labels come from."""
    missing = set()
    for path in (ROOT / "docs" / "tutorials").glob("*.md"):
        for label in re.findall(r"\*\*([A-Z][^*]+?)[.:]?\*\*", path.read_text("utf-8")):
            missing |= {f"{path.name}: {label}" for part in label.split("…") if part.strip() not in labels}
    assert not missing


def test_troubleshooting_quotes_errors_that_exist():
    """The fixed parts of each quoted message stand in the code; lines that the code breaks are joined."""
    code = re.sub(r'"\s*\n\s*f?"', "", SOURCES)
    page = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text("utf-8")
    quoted = re.findall(r"(?m)^\*\*`(.+)`\*\*$", page)
    assert len(quoted) >= 20
    parts = {part.strip() for message in quoted for part in message.split("…") if len(part.strip()) > 3}
    assert not {part for part in parts if part not in code}
