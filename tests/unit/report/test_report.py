"""The report: what it shows is text, it stays small, and bad input has a sentence."""

import json
import os
import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases

from contrastive_core import runs
from contrastive_core.base.score import Score
from contrastive_core.base.storage import SHIPPED
from contrastive_core.cli.main import main
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.towers import joined
from contrastive_lab.components.shared.mount import NO_THUMBNAILS, thumbnail_sheet
from contrastive_lab.report.contents import Contents, Part, without_paths
from contrastive_lab.report.document import document
from contrastive_lab.texts import el, verbatim

BAD = "</script><script>alert(1)</script><img src=x onerror=alert(1)>&\"'\x00\ud800"
TODAY = date(2026, 1, 2)
LIMIT = 5_000_000
rng = np.random.default_rng(0)


def part(title: str = "one", n: int = 30, images: np.ndarray | None = None) -> Part:
    """A run's part on made-up rows of three classes."""
    labels = np.arange(n) % 3
    rows = EmbeddingSet(
        rng.standard_normal((n, 4)).astype(np.float32),
        labels,
        tuple(f"{title} {i}" for i in range(n)),
        classes=(title, "b", "c"),
    )
    how = {"k": 20, "temperature": 0.07, "curve": {}}
    score = Score("kNN accuracy", "", 0.931, (0.9, 0.95), "share", extras=how)
    shown = np.arange(n)
    return Part(
        title=title,
        about=title,
        rows=rows,
        shown=shown,
        xy=rng.standard_normal((n, 2)).astype(np.float32),
        images=images,
        map_settings={"kind": "pca"},
        map_quality={},
        scores={"h": {"knn": score}, "raw": {}},
        settings=[(title, title)],
        loss_view=None,
        notes=[title],
    )


class Reader(HTMLParser):
    """Tags by name, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.text, self.inside = "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self.inside = tag

    def handle_data(self, data: str) -> None:
        if self.inside not in ("script", "style"):
            self.text += data


def test_whatever_a_file_says_is_text() -> None:
    page = document(Contents([part(BAD), part("two")], apart=BAD), TODAY)
    read = Reader(page)
    assert "Scores side by side" in read.text
    assert not [tag for tag, _ in read.tags if tag in ("img", "iframe", "a", "link")]
    assert not [a for _, given in read.tags for a in given if a.startswith("on")]
    scripts = [given for tag, given in read.tags if tag == "script"]
    assert sum(given.get("type") == "module" for given in scripts) == 1
    assert {given["type"] for given in scripts} == {"module", "application/octet-stream"}
    assert read.text.count("<script>alert(1)</script>") >= 5
    page.encode()  # halves of characters are gone


@cases(
    ("text", "shown"),
    [
        ("folder:/home/ann/cats and dogs · 8 rows", "folder:cats and dogs · 8 rows"),
        ("the folder /tmp/x1/images is gone", "the folder images is gone"),
        ("rows of h / z, 1/2 of 3", "rows of h / z, 1/2 of 3"),
        (f"{Path.home()}/a.npz", "a.npz"),
    ],
)
def test_a_report_names_no_folder_of_this_computer(
    text: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs.load("simclr-digits")
    monkeypatch.setitem(run.manifest["config"], "dataset", "folder:/home/ann/cats and dogs")
    assert without_paths(text, run) == shown


def test_markup_is_by_type() -> None:
    assert el("p", "<b>", el("i", "&"), 1, None, title='"') == ('<p title="&quot;">&lt;b&gt;<i>&amp;</i>1</p>')
    with pytest.raises(ValueError, match="cannot hold"):
        verbatim("script", "</SCRIPT>")


def test_two_runs_of_two_thousand_samples_are_below_five_megabytes() -> None:
    """With pictures that no format can make small, each run its own."""
    noise = [rng.integers(0, 255, (2000, 3, 32, 32)).astype(np.uint8) for _ in range(2)]
    soft = [(x // 4 + np.linspace(0, 150, 32)[:, None]).astype(np.uint8) for x in noise]
    for images in (noise, soft):
        parts = [part(f"run {i}", 2000, x) for i, x in enumerate(images)]
        assert len(document(Contents(parts), TODAY).encode()) < LIMIT


def test_runs_on_the_same_images_share_them() -> None:
    images = rng.integers(0, 255, (500, 3, 32, 32)).astype(np.uint8)
    one = document(Contents([part("a", 500, images)]), TODAY)
    two = document(Contents([part("a", 500, images), part("b", 500, images.copy())]), TODAY)
    assert len(two) < len(one) + 60_000
    names = re.findall(r'data-sheet="(sheet-\w+)"', two)
    assert names[0] == names[1]
    assert two.count(f'id="{names[0]}"') == 1


def test_a_sheet_of_pictures_fits_into_what_it_is_given() -> None:
    images = rng.integers(0, 255, (400, 3, 32, 32)).astype(np.uint8)
    for most, tile in ((300_000, 32), (50_000, 16)):
        small = thumbnail_sheet(images, most)
        assert 0 < len(small.picture) <= most
        assert small.picture[8:12] == b"WEBP"
        assert (small.across, small.tile) == (20, tile)
    assert thumbnail_sheet(images[:0], 1000) is NO_THUMBNAILS


def test_scores_stand_with_their_intervals_and_what_is_missing_is_said() -> None:
    text = Reader(document(Contents([part()]), TODAY)).text
    assert "kNN accuracyk 20, τ 0.0793.1 %90.0 to 95.0" in text
    bare = Reader(document(Contents([replace(part(), scores={})]), TODAY)).text
    assert "have not been scored" in bare


@pytest.fixture
def bad_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs that no report can be made of."""
    home = tmp_path / "runs"
    monkeypatch.setenv("CONTRASTIVE_LAB_RUNS", str(home))
    about = json.loads((SHIPPED / "sup_con-digits" / "run.json").read_text())
    for name in ("bare", "broken", "gone", "truncated"):
        (home / name).mkdir(parents=True)
        (home / name / "run.json").write_text(json.dumps({**about, "name": name}))
    (home / "broken" / "run.json").write_text("{")
    gone = {**about, "name": "gone", "config": {**about["config"], "dataset": f"folder:{tmp_path}/x"}}
    (home / "gone" / "run.json").write_text(json.dumps(gone))
    weights = (SHIPPED / "sup_con-digits" / "weights.safetensors").read_bytes()
    (home / "gone" / "weights.safetensors").write_bytes(weights)
    (home / "truncated" / "weights.safetensors").write_bytes(weights[:1000])
    return tmp_path


@cases(
    ("names", "out", "sentence"),
    [
        (["nobody"], "r.html", "nobody"),
        (["bare"], "r.html", "bare has no weights yet"),
        (["broken"], "r.html", "broken"),
        (["gone"], "r.html", "x"),
        (["truncated"], "r.html", "truncated"),
        (["bare"] * 2, "r.pdf", "must end in .html"),
        (["bare"], "nowhere/r.html", "there is no folder"),
        (["bare"], "folder.html", "is a folder"),
        ([str(i) for i in range(9)], "r.html", "at most 8 runs or files"),
    ],
)
def test_bad_input_has_one_sentence(
    bad_runs: Path, capsys: pytest.CaptureFixture[str], names: list[str], out: str, sentence: str
) -> None:
    (bad_runs / "folder.html").mkdir(exist_ok=True)
    status = main(["report", *names, "--out", str(bad_runs / out), "--device", "cpu"])
    *_, last = capsys.readouterr().err.strip().splitlines()
    assert status in (1, 2)
    assert last.startswith("error: ")
    assert sentence in last
    assert "Error:" not in last  # no type of an exception: nobody foresaw that
    assert not (bad_runs / "r.html").exists()


def test_a_folder_that_nobody_may_write_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda path, how: False)
    assert main(["report", "sup_con-digits", "--out", str(tmp_path / "r.html")]) == 2
    assert "nothing can be written into" in capsys.readouterr().err


def test_compressed_vectors_and_a_map_are_in_the_report_once_they_are_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path / "home"))
    x = rng.standard_normal((200, 16)).astype(np.float32)
    files = [str(tmp_path / f"{name}.npz") for name in ("old", "new")]
    for file in files:
        noisy = [(x + 0.3 * rng.standard_normal(x.shape)).astype(np.float32) for _ in range(2)]
        towers = ("query", "document"), range(30), range(200)
        joined(EmbeddingSet(noisy[0][:30]), EmbeddingSet(noisy[1]), *towers).save(file)
    out = tmp_path / "report.html"
    asked = ["report", *files, "--out", str(out), "--device", "cpu"]
    assert main(asked) == 0
    before = Reader(out.read_text()).text
    assert main(["evaluate", files[1], "--cost"]) == 0
    assert main(["compare", *files, "--adapter", str(tmp_path / "map.npz")]) == 0
    said = capsys.readouterr().out
    assert main(asked) == 0
    text = Reader(out.read_text()).text
    assert text.count("Smaller vectors") == 1  # of the second file alone
    title = "A map from the vectors of old.npz to those of new.npz"
    assert title in text
    for part in ("Smaller vectors", title):
        assert part not in before
    for sentence in (
        "30 of 30 queries, 200 documents, 16 dimensions",
        "documents; 30 queries on 66 held-out documents",
    ):
        assert sentence in said
        assert sentence in text
