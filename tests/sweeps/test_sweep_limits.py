"""A sweep file from anybody: neither its size nor its keys take the machine's memory."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from contrastive_core.errors import BadSetting
from contrastive_core.paths import ROOT
from contrastive_core.sweeps import spec

LONG_KEYS = {
    "bare": "a" + ".a" * 50_000 + " = 1",
    "spaced": "a" + " . a" * 50_000 + " = 1",
    "quoted": '"x, y"' + '."x\\" y"' * 9_000 + " = 1",
    "literal": "'a b'" + ".'a b'" * 9_000 + " = 1",
    "table": "[a" + ".a" * 50_000 + "]",
    "inline": "x = { a" + ".a" * 50_000 + " = 1 }",
}


@pytest.mark.parametrize("kind", LONG_KEYS)
def test_a_long_dotted_key_is_refused_before_it_is_parsed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("it was parsed"))
    with pytest.raises(BadSetting, match="a key has at most 8 parts"):
        spec.read(LONG_KEYS[kind], "a.toml")


@pytest.mark.parametrize("text", ['"' * 100_000, "a" * 200_000, "a." * 3 + "\\" * 100_000, "=" * 9])
def test_other_nonsense_is_refused_at_once(text: str) -> None:
    with pytest.raises(BadSetting):
        spec.read(text, "a.toml")


def test_too_large_a_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("# " + "x" * spec.LARGEST)
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("a.toml", "zero.toml"):
        with pytest.raises(BadSetting, match="cannot read"):
            spec.load(tmp_path / name)
    with pytest.raises(BadSetting, match="at most"):
        spec.read("# " + "x" * spec.LARGEST, "a.toml")


def test_decimals_and_short_keys_are_no_long_keys() -> None:
    values = ", ".join(["0.05"] * 50)
    assert not spec.DEEP.search(f"values = [{values}]\n[a.b.c]\nx.y.z = 1.5\n")


def test_a_title_is_read_from_the_first_lines_alone(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text('name = "n"\ntitle = "Mine: \\u03c4"  # said\n' + LONG_KEYS["bare"])
    assert spec.title_of(path) == "Mine: τ"
    for text in ("", 'title = "', "title = 3", "x = 1\n" * 2000 + 'title = "late"', "\0" * 9):
        path.write_text(text)
        assert spec.title_of(path) == "many"
    path.unlink()
    path.symlink_to("/dev/zero")
    assert spec.title_of(path) == "many"
    for ready in (ROOT / "sweeps").glob("*.toml"):
        assert spec.title_of(ready) == spec.load(ready).title


def test_a_folder_without_a_path_is_refused() -> None:
    text = '[base]\ndataset = "folder"\n[[axes]]\nkey = "lr"\nvalues = [0.1]\n'
    with pytest.raises(BadSetting, match=r"a\.toml: "):
        spec.read(text, "a.toml")
    with pytest.raises(BadSetting, match=r"a\.toml: "):
        spec.read(text.replace('"folder"', '"folder:"'), "a.toml")
