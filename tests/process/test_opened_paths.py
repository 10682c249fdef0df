"""What `contrastive-lab THING` takes a name for, the page it gives, and what it refuses."""

import os
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from PIL import Image

from contrastive_core import runs
from contrastive_core.base.storage import BUNDLE, SHIPPED, runs_home
from contrastive_lab import path_input
from contrastive_lab.desktop import command

SWEEP = BUNDLE / "sweeps" / "heads.toml"


def vectors(path: Path, n: int = 40) -> Path:
    np.save(path, np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32))
    return path


def picture(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path)
    return path


def query_of(place: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(place)
    return parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()}


def test_every_kind_is_recognized_under_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "Übung mit Leerzeichen"
    picture(folder / "images" / "Kätzchen 1" / "a b.PNG")
    (folder / "weights.pth.tar").touch()
    (folder / "own sweep.toml").touch()
    expected = {
        folder / "images": "folder",
        vectors(folder / "größe.npy"): "vectors",
        folder / "weights.pth.tar": "checkpoint",
        folder / "own sweep.toml": "sweep",
        SHIPPED / "simclr-digits": "run",
        SHIPPED / "simclr-digits" / "run.json": "run",
    }
    for name in ("corpus.jsonl", "queries.jsonl"):
        (folder / "beir").mkdir(exist_ok=True)
        (folder / "beir" / name).touch()
    expected |= {folder / "beir": "vectors", folder / "beir" / "corpus.jsonl": "vectors"}
    kinds = {path: command.recognize(str(path)).kind for path in expected}
    assert kinds == expected
    by_name = command.recognize("simclr-digits")
    assert by_name == command.recognize(str(SHIPPED / "simclr-digits"))


@pytest.mark.parametrize("name", ["nothing", "no/such/file", "missing.npz", "notes.txt", ".", "pipe.npz"])
def test_what_cannot_be_opened_names_what_was_expected(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").touch()
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(ValueError, match="expected a run, a folder of images, vectors"):
        command.recognize(name)


def test_images_are_not_looked_for_without_end(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c" / "d" / "e"
    picture(deep / "x.png")
    with pytest.raises(ValueError, match="neither a run"):
        command.recognize(str(tmp_path))
    assert command.recognize(str(deep)).kind == "folder"


@pytest.mark.parametrize("name", ["images", "old.ckpt"])
def test_no_path_stands_in_an_address(name: str, tmp_path: Path) -> None:
    picture(tmp_path / "images" / "x.png")
    (tmp_path / "old.ckpt").write_bytes(b"x")
    place = command.prepare(command.recognize(str(tmp_path / name)))
    page, query = query_of(place)
    assert page in ("/train", "/runs")
    assert str(tmp_path) not in place
    identity = query.get("folder") or query["file"]
    assert path_input.path_of(identity) == tmp_path / name
    assert command.prepare(command.recognize(str(tmp_path / name))) == place


def test_only_so_many_paths_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_input, "MOST", 3)
    names = [path_input.remember(Path(f"/some/where/{n}")) for n in range(5)]
    assert all(path_input.path_of(name) is None for name in (None, "", "/etc/passwd", "A" * 22, "a\0b"))
    assert sum(path_input.path_of(name) is not None for name in names) == 3
    assert path_input.path_of(names[-1]) == Path("/some/where/4")


def test_a_run_elsewhere_is_copied_once_and_anew_where_it_has_changed(tmp_path: Path) -> None:
    mine = runs.create("mine", {"method": "simclr", "dataset": "digits"})
    elsewhere = tmp_path / "elsewhere" / "mine"
    elsewhere.parent.mkdir()
    mine.path.rename(elsewhere)
    (elsewhere / "state").mkdir()
    (elsewhere / "state" / "1.json").write_text("{}")

    def opened() -> str:
        return query_of(command.prepare(command.recognize(str(elsewhere))))[1]["run"]

    assert (opened(), opened()) == ("mine", "mine")
    assert (runs_home() / "mine" / "state" / "1.json").read_text() == "{}"
    (elsewhere / "metrics.jsonl").write_text('{"step": 1}\n')
    assert (opened(), opened()) == ("mine-2", "mine-2")
    assert runs.load("mine-2").metrics() == [{"step": 1}]
    assert runs.load("mine-2").manifest["id"] == mine.manifest["id"]
    assert sorted(p.name for p in elsewhere.parent.rglob("*")) == [
        "1.json", "metrics.jsonl", "mine", "run.json", "state", "status.json"
    ]  # fmt: skip


def test_a_run_that_the_disk_does_not_hold_is_not_copied(tmp_path: Path) -> None:
    run = runs.create("vast", {"method": "simclr", "dataset": "digits"})
    run.path.rename(tmp_path / "vast")
    with (tmp_path / "vast" / "weights.safetensors").open("wb") as file:
        file.truncate(1 << 43)
    with pytest.raises(ValueError, match="too much to copy"):
        command.prepare(command.recognize(str(tmp_path / "vast")))
    assert list(runs_home().iterdir()) == []


def test_a_run_without_weights_is_watched_while_it_grows() -> None:
    runs.create("growing", {"method": "simclr", "dataset": "digits"}).set_status("running")
    page, query = query_of(command.prepare(command.recognize("growing")))
    assert (page, query["watch"]) == ("/train", "growing")
    page, query = query_of(command.prepare(command.recognize("sup_con-digits")))
    assert (page, query["run"]) == ("/explore", "sup_con-digits")


def test_a_sweep_is_kept_beside_the_others_once(tmp_path: Path) -> None:
    same = tmp_path / SWEEP.name
    same.write_bytes(SWEEP.read_bytes())
    other = tmp_path / "b" / SWEEP.name
    other.parent.mkdir()
    other.write_bytes(SWEEP.read_bytes() + b"\n# changed\n")
    names = [query_of(command.prepare(command.recognize(str(p))))[1]["sweep"] for p in (SWEEP, same, other, other)]
    assert names == ["heads", "heads", "heads-2", "heads-2"]
    assert [p.name for p in (runs_home() / ".sweeps").glob("*.toml")] == ["heads-2.toml"]


@pytest.mark.parametrize("ending", ["npy", "pth"])
def test_a_file_that_is_being_written_says_so(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"growing.{ending}"
    path.write_bytes(vectors(tmp_path / "whole.npy").read_bytes()[:500])
    done = threading.Event()

    def grow() -> None:
        while not done.is_set():
            with path.open("ab") as file:
                file.write(b"\0" * 64)
            time.sleep(0.01)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        with pytest.raises(ValueError, match="is still being written: open it when it is whole"):
            command.prepare(command.recognize(str(path)))
    finally:
        done.set()
        writer.join()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.npz", None),
        ("words.csv", b"name,city\nanna,berlin\n"),
        ("one.NPY", b"no array"),
        ("text.parquet", b"PAR1 and no more"),
        ("bad.npz", b"PK no archive"),
    ],
)
def test_what_holds_no_vectors_names_what_was_expected(name: str, content: bytes | None, tmp_path: Path) -> None:
    if content is None:
        np.savez(tmp_path / "whole.npz", features=np.ones((40, 8), np.float32))
        content = (tmp_path / "whole.npz").read_bytes()[:500]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"^{name} .*; expected a row of numbers for each sample"):
        command.prepare(command.recognize(str(tmp_path / name)))
