"""Vector files whose notes on themselves are hostile, and damaged entries in the list of opened files."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened_page import page_on

from contrastive_core.base.storage import data_home
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet

DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]
VALUES = (
    1e301,
    -1e301,
    10**4000,
    True,
    [],
    {},
    {"a": {}},
    DEEP,
    "x" * 10_000,
    "\x1b[31m",
    "\u202e",
    "a\nb",
    "folder:/",
)
PAGES = ("explore", "compare", "samples")


def foreign_file(path: Path, provenance: Any) -> Path:
    """What `EmbeddingSet.save` writes, with another provenance."""
    rows = EmbeddingSet(np.random.default_rng(len(str(provenance))).normal(size=(9, 4)).astype(np.float32))
    arrays = rows.arrays()
    meta = json.loads(arrays["meta"].tobytes()) | {"provenance": provenance}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("page", PAGES)
def test_pages_stay_up_beside_vectors_of_a_hostile_provenance(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, value in enumerate((1e301, DEEP)):
        path = foreign_file(tmp_path / f"{number}.npz", {"dataset": value})
        loaded_vectors._keep(str(path), path.name, None, (), None, None)
    assert len(loaded_vectors.loaded()) == 2
    assert not page_on(page, monkeypatch, run="simclr-digits").exception


def test_a_provenance_keeps_short_printable_text(tmp_path: Path, record_property: Callable[..., None]) -> None:
    rng, count = random.Random(0), 60
    for number in range(count):
        keys = ("dataset", "columns", "file", "image_size", "resize", "paired_by", "x" * 500, "\x00")
        hostile = {key: rng.choice(VALUES) for key in rng.sample(keys, 4)}
        path = foreign_file(tmp_path / f"{number}.npz", hostile)
        key = loaded_vectors._keep(str(path), path.name, None, (), None, None)
        kept = loaded_vectors.rows(key).provenance
        assert all(len(str(value)) <= 300 and str(value).isprintable() for value in kept.values()), kept
    assert not loaded_vectors.damaged()
    record_property("hostile", ["provenance", 0, count])


def damage(folder: Path) -> None:
    (folder / "about.json").write_text(json.dumps({"name": [], "rows": 1e301}))


def empty(folder: Path) -> None:
    (folder / "about.json").write_bytes(b"")


def as_pipe(folder: Path) -> None:
    (folder / "about.json").unlink()
    os.mkfifo(folder / "about.json")


def as_folder(folder: Path) -> None:
    (folder / "about.json").unlink()
    (folder / "about.json").mkdir()


@pytest.mark.parametrize("harm", [damage, empty, as_pipe, as_folder])
def test_a_damaged_entry_is_listed_and_can_be_forgotten(
    harm: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = []
    for name in ("whole", "harmed"):
        path = foreign_file(tmp_path / f"{name}.npz", {"dataset": name})
        keys.append(loaded_vectors._keep(str(path), path.name, None, (), None, None))
    whole, harmed = keys
    harm(data_home() / "spaces" / harmed)
    assert list(loaded_vectors.loaded()) == [whole]
    assert list(loaded_vectors.damaged()) == [harmed]
    app = page_on("explore", monkeypatch, run="simclr-digits", vectors=harmed)
    assert not app.exception
    app.button(f"forget-{harmed}").click().run()
    assert not app.exception
    assert not loaded_vectors.damaged()
    assert list(loaded_vectors.loaded()) == [whole]
