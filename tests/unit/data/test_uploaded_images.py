"""Files that were dropped: nothing leaves the new folder, what is no image is named."""

import io
from pathlib import Path

import pytest
from cases import cases
from PIL import Image

from contrastive_core.base.errors import BadSetting
from contrastive_core.base.storage import data_home
from contrastive_core.data import datasets, folder_selection
from contrastive_core.data.folder_selection import Upload


def picture(name: str) -> Upload:
    out = io.BytesIO()
    Image.new("RGB", (8, 6), (9, 9, 9)).save(out, "PNG")
    return name, out.getvalue()


def files_below(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


@cases(
    "name",
    [
        "../up.png",
        "pets/../../up.png",
        "/etc/up.png",
        "C:\\up.png",
        "pets\\..\\..\\up.png",
        "pets//up.png",
        "pets/.hidden/up.png",
        "pets/.up.png",
        "a\0b.png",
        "pets/a\n.png",
        "",
        "pets/con:x.png",
        "x" * 200 + ".png",
        "a/" * 9 + "up.png",
        "pets/ends./up.png",
        "\u202egnp.exe.png",
    ],
)
def test_a_path_that_leads_elsewhere_is_no_path(name: str) -> None:
    assert folder_selection.parts_of(name) == ()
    folder, left_out = folder_selection.save_uploads([picture(name), picture("pets/cats/a.png")])
    assert files_below(folder) == {"cats/a.png"}
    assert len(left_out) == 1
    everything = files_below(data_home().parent)
    assert not any("up.png" in path or "exe" in path for path in everything)


def test_classes_are_the_folders_of_the_paths() -> None:
    names = [f"pets/{c}/{i}.png" for c in ("cats", "dogs") for i in range(5)]
    shares: list[float] = []
    folder, left_out = folder_selection.save_uploads([picture(n) for n in names], shares.append)
    assert (folder.name, folder.parent, left_out) == ("pets", data_home() / "dropped", [])
    assert shares[-1] == 1
    data = datasets.load(f"folder:{folder}", "train")
    assert data.classes == ("cats", "dogs")
    again, _ = folder_selection.save_uploads([picture("pets\\cats\\1.png")])
    assert again.name == "pets-2"
    assert files_below(again) == {"cats/1.png"}


def test_loose_files_are_images_without_classes() -> None:
    folder, _ = folder_selection.save_uploads([picture("./a.png"), picture("b.png"), picture("cats/c.png")])
    assert folder.name == "images"
    assert files_below(folder) == {"a.png", "b.png", "cats/c.png"}


def test_what_is_no_image_is_named_with_the_reason() -> None:
    files = [
        picture("p/a.png"),
        ("p/b.png", b"no image"),
        ("p/c.txt", b"text"),
        picture("p/a.png"),
        ("p/d.png", picture("x")[1][:20]),
    ]
    folder, left_out = folder_selection.save_uploads(files)
    assert files_below(folder) == {"a.png"}
    why = dict(left_out)
    assert "not an image in one of the formats" in why["p/b.png"]
    assert why["p/c.txt"] == "not an image file, judging by its extension"
    assert why["p/a.png"] == "another file has this name"
    assert "cannot be read" in why["p/d.png"]


def test_what_is_cancelled_or_refused_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder_selection.save_uploads([picture("p/a.png")], stop)
    with pytest.raises(BadSetting, match="None of these files is an image"):
        folder_selection.save_uploads([("p/a.txt", b"x")])
    assert list((data_home() / "dropped").iterdir()) == []
    monkeypatch.setattr(folder_selection, "MOST_FILES", 1)
    with pytest.raises(BadSetting, match="at most 1"):
        folder_selection.save_uploads([picture("a.png"), picture("b.png")])
    monkeypatch.undo()
    monkeypatch.setattr(folder_selection, "SPARE", 1 << 60)
    with pytest.raises(BadSetting, match="MB free"):
        folder_selection.save_uploads([picture("a.png")])
