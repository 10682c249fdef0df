"""A part's modules as one: nothing is left to be fetched, and what is not understood is refused."""

import re
from pathlib import Path

import pytest
from cases import cases

from contrastive_lab.components.shared import mount as made

OWN_ENTRIES = ("main.js", "notebook.js", "file.js", "worker.js")
ENTRIES = sorted(
    str(path.relative_to(made.COMPONENTS))
    for name in OWN_ENTRIES[:2]
    for path in made.COMPONENTS.rglob(name)
    if path.parent.name != "shared"
)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(made, "COMPONENTS", tmp_path.resolve())
    made.bundle.cache_clear()
    yield tmp_path.resolve()
    made.bundle.cache_clear()


@cases("entry", ENTRIES)
def test_a_bundle_asks_for_nothing(entry: str) -> None:
    text = made.bundle(entry)
    assert not re.search(r"^\s*import\b|^export (?!default)|\bimport\(|\bimport\.meta", text, re.M)
    assert text.count("export default") == 1
    for path in (made.COMPONENTS / entry).parent.glob("*.js"):
        if path.name not in OWN_ENTRIES:
            assert path.read_text().splitlines()[0] in text  # each module stands in it, once
            assert text.count(path.read_text().splitlines()[0]) == 1


def test_names_of_modules_do_not_meet(parts: Path) -> None:
    (parts / "a.js").write_text('import { x as y } from "./b.js";\n\nconst x = 1;\n\nexport default x + y;\n')
    (parts / "b.js").write_text("export const x = 2;\n")
    text = made.bundle("a.js")
    assert "const { x: y } = $module0;" in text
    assert "const $default = x + y;" in text
    assert text.rstrip().endswith("export default $module1.default;")


@cases(
    "line",
    [
        'import * as b from "./b.js";',
        'import "./b.js";',
        'export { x } from "./b.js";',
        "export let y = 1;",
        "export class C {}",
        "export default class {}",
        'const b = await import("./b.js");',
        "const here = import.meta.url;",
        'import { missing } from "./b.js";',
        'import { z } from "./b.js";',
    ],
)
def test_other_forms_are_refused(parts: Path, line: str) -> None:
    (parts / "a.js").write_text(f"{line}\n\nexport default 1;\n")
    (parts / "b.js").write_text("export const x = 2,\n  z = 3;\n")
    with pytest.raises(ValueError, match=r"cannot be bundled|does not export"):
        made.bundle("a.js")


def test_a_circle_of_imports_is_refused(parts: Path) -> None:
    (parts / "a.js").write_text('import { b } from "./b.js";\n\nexport const a = b;\n')
    (parts / "b.js").write_text('import { a } from "./a.js";\n\nexport const b = a;\n')
    with pytest.raises(ValueError, match="imports itself"):
        made.bundle("a.js")
