"""Folders as a file dialog lists them: with their pictures, without what is hidden or a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from contrastive_core.data import folder_preview
from contrastive_core.data.folder_preview import pictures_in, subfolders


def files(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


def test_each_folder_has_its_pictures(tmp_path: Path) -> None:
    files(tmp_path / "Pets" / "train" / "cat", "1.png", "2.JPG", "notes.txt")
    files(tmp_path / "Pets" / "test" / "cat", "3.jpeg")
    files(tmp_path / "empty")
    files(tmp_path / ".hidden", "1.png")
    files(tmp_path, "4.png")
    (tmp_path / "link").symlink_to(tmp_path / "Pets")
    listed = subfolders(tmp_path)
    assert [(s.name, s.pictures, s.is_exact) for s in listed] == [("empty", 0, True), ("Pets", 3, True)]
    assert pictures_in(tmp_path) == (4, True)


def test_a_huge_folder_is_not_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_preview, "LOOKS", 10)
    files(tmp_path / "many", *(f"{i}.png" for i in range(30)))
    (one,) = subfolders(tmp_path)
    assert (one.pictures, one.is_exact) == (10, False)


def test_what_cannot_be_read_is_as_if_it_were_empty(tmp_path: Path) -> None:
    assert pictures_in(tmp_path / "nothing") == (0, True)
    with pytest.raises(OSError, match="nothing"):
        subfolders(tmp_path / "nothing")
