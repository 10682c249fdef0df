"""The form that images of a folder are brought to: sizes, resizing, kinds of files, the cache."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from contrastive_core.base import sandbox
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.storage import data_home
from contrastive_core.data import datasets, image_cache, image_decoding
from contrastive_core.data.dataset import KNOWN, ImageForm
from contrastive_core.data.image_decoding import decode_image
from contrastive_core.runs.train_config import TrainConfig
from contrastive_core.train.settings import resolve, with_image_size


def save(path: Path, array: np.ndarray, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)
    return path


def photos(folder: Path, n: int = 10, size: tuple[int, int] = (40, 60)) -> str:
    rng = np.random.default_rng(0)
    for i in range(n):
        save(folder / "photos" / f"{i:03d}.png", rng.integers(0, 256, (*size, 3), np.uint8))
    return f"folder:{folder / 'photos'}"


# --- size and resizing --------------------------------------------------------------------------


def test_a_size_and_how_it_is_reached(tmp_path: Path) -> None:
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, :20], wide[:, 20:40], wide[:, 40:] = 50, 100, 250
    path = save(tmp_path / "wide.png", wide)
    cropped, _ = decode_image(path, 20, channels=3)
    padded, _ = decode_image(path, 30, channels=3, resize="pad")
    assert np.unique(cropped).tolist() == [100]  # the middle third
    assert padded.shape == (3, 30, 30)
    assert padded[0, :, 15].tolist() == [0] * 10 + [100] * 10 + [0] * 10
    assert padded[0, 15, 2] == 50  # nothing is cut off
    assert padded[0, 15, 27] == 250


def test_each_form_has_a_cache_of_its_own(tmp_path: Path) -> None:
    name = photos(tmp_path)
    sizes = [datasets.load(name, form=ImageForm(s)).images.shape[2] for s in (None, 16, 24)]
    assert sizes == [40, 16, 24]  # the median of the shorter sides, where none is named
    assert datasets.load(name, form=ImageForm(24, "pad")).images[:, :, 0].max() == 0
    assert datasets.is_made(name, "train", ImageForm(16))
    assert not datasets.is_made(name, "train", ImageForm(17))
    assert datasets.load(name, "test", form=ImageForm(16)).images.shape[2] == 16


def test_the_default_is_the_encoders(tmp_path: Path) -> None:
    small, large = photos(tmp_path / "s", size=(40, 60)), photos(tmp_path / "l", size=(100, 120))

    def size(dataset: str, encoder: str = "small", **knobs: Any) -> int | None:
        config = TrainConfig(dataset=dataset, encoder=encoder, encoder_knobs=knobs)
        return with_image_size(config).image_size

    assert (size(small), size(large)) == (40, 64)
    assert (size(small, "resnet18"), size(large, "resnet18")) == (40, 224)
    assert size(large, "resnet18", stem="small") == 64
    assert size(large, "small", pixels=48) == 48
    assert size("digits", "resnet18") is None
    named = TrainConfig(dataset=large, image_size=128)
    assert with_image_size(named) == named


def test_what_is_no_form_is_refused() -> None:
    for size, resize in ((3, "crop"), (2000, "crop"), (32, "stretch")):
        with pytest.raises(BadSetting, match=r"image_size must lie in|resize must be"):
            TrainConfig(image_size=size, resize=resize)
    with pytest.raises(BadSetting, match=r"image_size is for folders.*encoder.pixels=32"):
        datasets.load("digits", form=ImageForm(32))
    for dataset, pixels, is_told in (("folder:x", 600, True), ("folder:x", 518, False), ("digits", 600, False)):
        notes = resolve(TrainConfig("simclr", dataset, encoder_knobs={"pixels": pixels}), KNOWN["digits"]).notes
        told = "expects images of 600 pixels; images of a folder are stored at 518" in " ".join(notes)
        assert told == is_told, (dataset, pixels)


# --- kinds of files -------------------------------------------------------------------------------

RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)


def read(path: Path, channels: int = 1) -> np.ndarray:
    array, note = decode_image(path, 16, channels)
    assert note == ""
    return array[0] if channels == 1 else array


def test_deep_pictures_are_scaled(tmp_path: Path) -> None:
    for name, array in {"a.png": np.uint16(257) * RAMP, "a.tif": np.uint16(257) * RAMP}.items():
        assert np.array_equal(read(save(tmp_path / name, array.astype(np.uint16))), RAMP), name
    assert np.array_equal(read(save(tmp_path / "i.tif", RAMP.astype(np.int32) * 257)), RAMP)
    assert np.array_equal(read(save(tmp_path / "f.tif", RAMP.astype(np.float32) / 255)), RAMP)
    with pytest.raises(ValueError, match="values from -1 to 254"):
        read(save(tmp_path / "n.tif", RAMP.astype(np.float32) - 1))


def test_transparency_lies_on_white_ink_and_turned_pictures_are_shown_right(tmp_path: Path) -> None:
    alpha = np.where(RAMP < 128, 0, 255).astype(np.uint8)
    expected = np.where(RAMP < 128, 255, RAMP)
    gray_alpha = save(tmp_path / "la.png", np.stack([RAMP, alpha], -1))
    color_alpha = save(tmp_path / "rgba.png", np.stack([RAMP, RAMP, RAMP, alpha], -1))
    assert np.array_equal(read(gray_alpha), expected)
    assert np.array_equal(read(color_alpha, channels=3), np.stack([expected] * 3))
    palette = Image.fromarray(np.minimum(RAMP, 1)).convert("P")
    palette.putpalette([200, 10, 20, 1, 2, 3])
    palette.save(tmp_path / "p.png", transparency=0)
    assert read(tmp_path / "p.png", channels=3)[:, 0, [0, 5]].T.tolist() == [[255, 255, 255], [1, 2, 3]]
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(tmp_path / "ink.jpg", quality=100)
    assert np.abs(read(tmp_path / "ink.jpg", channels=3)[:, 8, 8] - [255, 0, 0]).max() < 4
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    for kind, array in (("png", RAMP), ("tif", RAMP.astype(np.uint16) * 257)):
        Image.fromarray(array).save(tmp_path / f"turned.{kind}", exif=exif)
        assert np.array_equal(read(tmp_path / f"turned.{kind}"), np.rot90(RAMP, -1)), kind


def test_of_several_pages_the_first_is_taken_and_said(tmp_path: Path) -> None:
    pages = [Image.fromarray(RAMP), Image.fromarray(255 - RAMP)]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    array, note = decode_image(tmp_path / "pages.tif", 16, channels=1)
    assert np.array_equal(array[0], RAMP)
    assert note == "several pages; only the first was read"


# --- the cache ------------------------------------------------------------------------------------


def test_many_files_are_decoded_by_processes_as_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = photos(tmp_path, 30, (8, 8))
    (tmp_path / "photos" / "003.png").write_bytes(b"no picture")
    whole = datasets.load(name, form=ImageForm(8))
    shutil.rmtree(data_home() / "data")
    monkeypatch.setattr(image_cache, "CHUNK", 4)
    monkeypatch.setattr(image_cache, "FEW", 0)
    monkeypatch.setattr(image_decoding, "processes", lambda: 2)
    stages: list[tuple[str, float | None]] = []
    again = datasets.load(name, form=ImageForm(8), on_progress=lambda *s: stages.append(s))
    assert again.fingerprint == whole.fingerprint
    assert again.skipped == whole.skipped
    assert [n for n, _ in again.skipped] in ([], ["003.png"])
    assert "8 × 8 pixels, cropped to the middle" in stages[0][0]
    assert stages[-1][1] == 1.0
    assert not list((data_home() / "data").glob("*.partial"))


def test_decoding_that_was_stopped_twice_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, real = photos(tmp_path, 20, (8, 8)), image_decoding.decode_sandboxed
    whole = datasets.load(name, form=ImageForm(8)).fingerprint
    shutil.rmtree(data_home() / "data")
    monkeypatch.setattr(image_cache, "CHUNK", 4)
    calls: list[int] = []

    def decode_chunk(child: sandbox.Sandbox, file: str, start: int, *rest: Any) -> dict[str, Any]:
        calls.append(start)
        if start == 8 and calls.count(8) < 3:
            raise KeyboardInterrupt
        return real(child, file, start, *rest)

    monkeypatch.setattr(image_decoding, "decode_sandboxed", decode_chunk)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            datasets.load(name, form=ImageForm(8))
    assert datasets.load(name, form=ImageForm(8)).fingerprint == whole
    assert calls == [0, 4, 8, 8, 8, 12]  # what was decoded stays so, also after the second stop


def test_rows_lie_on_the_disk_before_they_are_named_as_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, named, real = photos(tmp_path, 20, (8, 8)), list[int](), image_cache.storage.sync_file

    def sync(file: Any) -> None:
        if "partial" in str(file.name):
            log = next((data_home() / "data").glob("*.partial/chunks.jsonl"))
            named.append(len(log.read_text().splitlines()))
        real(file)

    monkeypatch.setattr(image_cache, "CHUNK", 8)
    monkeypatch.setattr(image_cache, "FLUSH", 0.0)
    monkeypatch.setattr(image_cache.storage, "sync_file", sync)
    datasets.load(name, form=ImageForm(8))
    assert named == [0, 1, 2]


def test_a_file_that_ends_the_process_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = photos(tmp_path, 3, (8, 8))
    file = tmp_path / "rows"
    file.write_bytes(bytes(image_decoding.HEADER + 3 * 192))
    paths = [str(tmp_path / "photos" / f"{i:03d}.png") for i in range(3)]
    real = sandbox.Sandbox.call

    def dies(self: Any, rows: str, start: int, some: list[str], form: image_decoding.Form) -> Any:
        answer = real(self, rows, start, some, form)
        if paths[1] in some:
            raise sandbox.Crashed("its pipe is closed")
        return answer

    monkeypatch.setattr(sandbox.Sandbox, "call", dies)
    with closing(sandbox.Sandbox(image_decoding.decode_chunk)) as child:
        answer = image_decoding.decode_sandboxed(child, str(file), 0, paths, (8, 3, "crop"))
    assert answer["failed"] == {"1": image_decoding.DIED}
    assert np.fromfile(file, np.uint8)[-192:].any()
    assert name


def test_what_does_not_fit_on_the_disk_is_refused_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both splits: a training of days would end before a test that does not fit."""
    name, split_bytes = photos(tmp_path), image_cache.space_of(8, 512)
    free = split_bytes + image_cache.MARGIN + 1000
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, free))
    with pytest.raises(BadSetting, match=r"10 images of 512 × 512 pixels need 8 MB in .* 73 MB is free"):
        datasets.load(name, form=ImageForm(512))
    assert not list((data_home() / "data").glob("*.partial"))
    free += image_cache.space_of(2, 512)
    datasets.load(name, form=ImageForm(512))
    free = image_cache.space_of(2, 512) + image_cache.MARGIN  # the other takes no more
    assert len(datasets.load(name, "test", form=ImageForm(512))) == 2


def test_color_is_told_once_by_the_training_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both splits: else a model could not take the other's images."""
    for i in range(8):
        save(tmp_path / "train" / f"{i}.png", RAMP)
    save(tmp_path / "test" / "0.png", np.stack([RAMP] * 3, -1))
    monkeypatch.setattr(image_cache, "TOLD", 2)
    stages: list[tuple[str, float | None]] = []
    sets = [datasets.load(f"folder:{tmp_path}", s, on_progress=lambda *s: stages.append(s)) for s in ("train", "test")]
    assert [(one.images.shape[1:], one.form) for one in sets] == [((1, 16, 16), ImageForm(16))] * 2
    looked = [(text, share) for text, share in stages if "the colors" in text]
    assert looked[0] == ("checking the colors of 8 images", 1 / 8)
    assert len(looked) == 4
