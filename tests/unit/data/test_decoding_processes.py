"""Images decoded by other processes: what these import, what they are asked, what they answer."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from PIL import Image, ImageOps

from contrastive_core.base.sandbox import Sandbox
from contrastive_core.base.storage import ROOT, data_home
from contrastive_core.data import datasets, image_cache, image_decoding
from contrastive_core.data.dataset import ImageForm
from contrastive_core.data.image_decoding import HEADER, decode_chunk, decode_image, decode_sandboxed

ORIENTATION = 0x0112  # of EXIF


def written(folder: Path, n: int = 20) -> Path:
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for i in range(n):
        Image.fromarray(rng.integers(0, 256, (9, 12, 3), np.uint8)).save(folder / f"{i:03d}.png")
    return folder


def test_a_process_that_decodes_images_imports_no_torch(tmp_path: Path) -> None:
    path = written(tmp_path / "set", 1) / "000.png"
    (tmp_path / "rows").write_bytes(bytes(HEADER + 3 * 64))
    script = (
        "import sys\nfrom contrastive_core.data.image_decoding import decode_chunk\n"
        "answer = decode_chunk(sys.argv[1], 0, [sys.argv[2]], (8, 3, 'crop'))\n"
        "assert not answer['failed'], answer\n"
        "print([m for m in ('torch', 'scipy') if m in sys.modules])"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "rows"), str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    row = np.fromfile(tmp_path / "rows", np.uint8, offset=HEADER).reshape(3, 8, 8)
    assert np.array_equal(row, decode_image(path, 8, 3)[0])


@cases("mode", ["L", "P", "RGB", "CMYK"])
@cases("turn", [1, 2, 5, 6, 8])
def test_pixels_are_those_of_pillows_own_steps(tmp_path: Path, mode: str, turn: int) -> None:
    """No copy is made that is not needed; the values are those of the steps with all copies."""
    noise = np.random.default_rng(0).integers(0, 256, (30, 44, 3), np.uint8)
    exif, path = Image.Exif(), tmp_path / f"a.{'png' if mode == 'P' else 'jpg'}"
    exif[ORIENTATION] = turn
    Image.fromarray(noise).convert(mode).save(path, exif=exif)
    for channels, to in ((1, "L"), (3, "RGB")):
        with Image.open(path) as image:
            image.draft(None, (32, 32)) if image.format == "JPEG" else None
            upright = ImageOps.exif_transpose(image).convert(to)
        fitted = np.asarray(ImageOps.fit(upright, (16, 16), Image.Resampling.BILINEAR))
        expected = fitted[None] if channels == 1 else fitted.transpose(2, 0, 1)
        assert np.array_equal(decode_image(path, 16, channels)[0], expected)


def test_a_folder_named_from_where_one_stands_is_decoded_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that decode stand in another folder."""
    written(tmp_path / "set")
    whole = datasets.load(f"folder:{tmp_path / 'set'}", form=ImageForm(8))
    monkeypatch.setattr(image_cache, "CHUNK", 4)
    monkeypatch.setattr(image_cache, "FEW", 0)
    monkeypatch.setattr(image_decoding, "processes", lambda: 2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", "caches")
    near = datasets.load("folder:set", form=ImageForm(8))
    assert (near.fingerprint, near.skipped) == (whole.fingerprint, [])


def test_only_what_lies_on_the_disk_is_named_as_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"folder:{written(tmp_path / 'set')}"
    events: list[tuple[str, int]] = []
    real_sync, real_chunk = image_cache.storage.sync_file, image_decoding.decode_sandboxed

    def named() -> int:
        log = next((data_home() / "data").glob("*.partial/chunks.jsonl"))
        return len(log.read_text().splitlines())

    def sync(file: Any) -> None:
        if "partial" in str(file.name):
            events.append(("flushed", named()))
        real_sync(file)

    def decode_chunk(*chunk: Any) -> dict[str, Any]:
        events.append(("decoded", named()))
        return real_chunk(*chunk)

    monkeypatch.setattr(image_cache, "CHUNK", 8)
    monkeypatch.setattr(image_decoding, "decode_sandboxed", decode_chunk)
    monkeypatch.setattr(image_cache.storage, "sync_file", sync)
    monkeypatch.setattr(image_cache, "FLUSH", 0.0)
    datasets.load(name, form=ImageForm(8))
    assert events == [("decoded", 0), ("flushed", 0), ("decoded", 1), ("flushed", 1), ("flushed", 2)]
    events.clear()
    monkeypatch.setattr(image_cache, "FLUSH", 1e9)
    datasets.load(name, form=ImageForm(9))
    assert events == [("decoded", 0), ("decoded", 0), ("flushed", 0), ("flushed", 2)]


def test_rows_that_cannot_be_written_are_no_fault_of_the_pictures(tmp_path: Path) -> None:
    path = os.fspath(written(tmp_path / "set", 1) / "000.png")
    with closing(Sandbox(decode_chunk)) as sandbox, pytest.raises(FileNotFoundError):
        decode_sandboxed(sandbox, str(tmp_path / "none" / "rows"), 0, [path], (8, 1, "crop"))
