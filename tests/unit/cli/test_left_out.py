"""Files of a folder that are left out: counted, with the reason, wherever the folder is used."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.messages import message, translate
from contrastive_core.base.storage import ROOT
from contrastive_core.cli.main import main
from contrastive_core.data import datasets
from contrastive_core.engine import answers, process
from contrastive_lab.locale import catalog

SMALL = ["batch_size=8", "sample=16", "encoder.width=0.25", "recipe.crop=0"]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Two classes, two links and a file that is no picture."""
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        for number in range(24):
            path = tmp_path / "images" / split / "ab"[number % 2] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8)).save(path)
    (tmp_path / "images/train/a/link.png").symlink_to(tmp_path / "images/train/b/1.png")
    (tmp_path / "images/train/c").symlink_to(tmp_path / "images/train/b")
    (tmp_path / "images/train/b/torn\x1b[31m.png").write_bytes(b"no")
    return f"folder:{tmp_path / 'images'}"


def test_the_sentence_counts_each_reason(folder: str) -> None:
    text = datasets.load(folder, "train").left_out
    assert text.startswith("Files left out of the training images: 3, the first ")
    assert "2 × a link; links are followed only with " in text
    assert "1 × not an image in one of the formats" in text
    assert text.endswith(".")
    assert text.isprintable()
    assert datasets.load(folder, "test").left_out == ""


def test_commands_and_pages_say_it(folder: str, capsys, monkeypatch) -> None:
    setting = [part for value in SMALL for part in ("--set", value)]
    train = ["train", "--dataset", folder, "--run", "r", "--epochs", "1", "--device", "cpu"]
    assert main([*train, *setting]) == 0
    assert capsys.readouterr().err.count("Files left out of the training images: 3") == 1
    for split, count in (("train", 1), ("test", 0)):
        assert main(["embed", "r", "--split", split, "--device", "cpu"]) == 0
        assert capsys.readouterr().err.count("Files left out") == count
        assert main(["samples", "r", "--split", split, "--device", "cpu"]) == 0
        assert capsys.readouterr().err.count("Files left out") == count
    asked = {"method": "simclr", "dataset": folder, "set": []}
    assert answers.make("views", asked).meta["left_out"].startswith("Files left out of the training images: 3")
    assert runs.load("r").manifest["left_out"].startswith("Files left out of the training images: 3")

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(process, "spawn", lambda *a, **k: None)
    for split, is_said in (("test", False), ("train", True)):
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
        app.query_params["run"], app.query_params["split"] = "r", split
        app.switch_page("pages/explore.py").run()
        assert not app.exception
        assert any("Files left out of the training images" in c.value for c in app.caption) is is_said
    assert not any("folder:" in c.value for c in app.caption)
    app.switch_page("pages/samples.py").run()
    assert not app.exception
    assert any("Files left out of the training images" in c.value for c in app.caption)


CUT_OFF = "Truncated File Read"  # as Pillow says it, and kept
OTHERS = message(
    "Files of unsupported types are skipped: {listed}.", listed=message("{ending} ({n})", ending=".avif", n=1)
)
PAGES = "several pages; only the first was read"


def test_whole_sentences_in_both_languages() -> None:
    """Those on endings follow them, and each has its full stop."""
    dataset = datasets.Dataset(
        "folder:/pictures",
        "test",
        np.zeros((0, 1, 8, 8), np.uint8),
        np.zeros(0, np.int64),
        (),
        [],
        "",
        skipped=[(f"{i}.png", why) for i, why in enumerate([CUT_OFF, *["not a file"] * 1201, "x", "y"])],
        notes=[(f"a/{i}.tif", PAGES) for i in range(2)],
        remarks=(OTHERS,),
    )
    assert dataset.left_out == (
        "Files left out of the test images: 1,204, the first 0.png (1,201 × not a file; 1 × the file is cut off; "
        "1 × x; …). Files of the test images that were not read completely: 2, the first a/0.tif (several pages; only "
        "the first was read). Files of unsupported types are skipped: .avif (1)."
    )
    assert translate(dataset.left_out, catalog("zh").gettext) == (
        "测试图像中未纳入的文件：1,204 个，首个为 0.png（1,201 × 不是文件; 1 × 文件不完整; 1 × x; …）。"
        "测试图像中只读取了一部分的文件：2 个，首个为 a/0.tif（有多页，只取第一页）。"
        "未纳入无法读取的文件类型：.avif（1）。"
    )
