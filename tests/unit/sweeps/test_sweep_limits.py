"""A sweep file from anybody: neither its size nor its keys take the machine's memory."""

import tomllib
from pathlib import Path

import pytest
from cases import cases

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.paths import ROOT
from contrastive_core.sweeps import sweep_file

LONG_KEYS = {
    "bare": "a" + ".a" * 50_000 + " = 1",
    "spaced": "a" + " . a" * 50_000 + " = 1",
    "quoted": '"x, y"' + '."x\\" y"' * 9_000 + " = 1",
    "literal": "'a b'" + ".'a b'" * 9_000 + " = 1",
    "table": "[a" + ".a" * 50_000 + "]",
    "inline": "x = { a" + ".a" * 50_000 + " = 1 }",
}


@cases("kind", LONG_KEYS)
def test_a_long_dotted_key_is_refused_before_it_is_parsed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("it was parsed"))
    with pytest.raises(BadSetting, match="a key has at most 8 parts"):
        sweep_file.read(LONG_KEYS[kind], "a.toml")


def test_too_large_a_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("# " + "x" * sweep_file.LARGEST)
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("a.toml", "zero.toml"):
        with pytest.raises(BadSetting, match="cannot read"):
            sweep_file.load(tmp_path / name)
    with pytest.raises(BadSetting, match="at most"):
        sweep_file.read("# " + "x" * sweep_file.LARGEST, "a.toml")


def test_decimals_and_short_keys_are_no_long_keys() -> None:
    values = ", ".join(["0.05"] * 50)
    assert not sweep_file.DEEP.search(f"values = [{values}]\n[a.b.c]\nx.y.z = 1.5\n")


def test_a_title_is_read_from_the_first_lines_alone(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text('name = "n"\ntitle = "Mine: \\u03c4"  # said\n' + LONG_KEYS["bare"])
    assert sweep_file.title_of(path) == "Mine: τ"
    for text in ("", 'title = "', "title = 3", "x = 1\n" * 2000 + 'title = "late"', "\0" * 9):
        path.write_text(text)
        assert sweep_file.title_of(path) == "many"
    path.unlink()
    path.symlink_to("/dev/zero")
    assert sweep_file.title_of(path) == "many"
    for ready in (ROOT / "sweeps").glob("*.toml"):
        assert sweep_file.title_of(ready) == sweep_file.load(ready).title
