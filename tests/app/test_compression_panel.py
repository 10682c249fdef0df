"""Compression on Explore: the smallest vectors that lose little, a line for each precision, and a table of all."""

from pathlib import Path

import numpy as np
import pytest
from opened_page import opened

from contrastive_core.compare.comparison import judgments_request
from contrastive_core.engine import answers
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_core.spaces.towers import joined
from contrastive_lab import path_input


def test_the_panel_names_the_smallest_vectors_by_the_judgments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 32)).astype(np.float32)
    sides = [EmbeddingSet(x, ids=tuple(f"{name}{i}" for i in range(60))) for name in "qd"]
    key = loaded_vectors.save_vectors(joined(*sides, ("query", "document")), "pairs.npz")
    judged = tmp_path / "qrels.tsv"
    judged.write_text("".join(f"q{i}\td{i}\t1\n" for i in range(50)))
    answers.make("compression", {"space": Space.of_vectors(key).values, **judgments_request(judged)})
    app = opened("explore", monkeypatch, vectors=key, qrels=path_input.remember(judged))
    app.button_group(key="explore-more").set_value("Compression").run()
    assert not app.exception
    assert any("50 of 50 queries among 60 documents" in c.value for c in app.caption)
    assert any("instead of 128 bytes per vector" in m.value for m in app.markdown)
    table = app.dataframe[-1].value
    assert len(table) == 4 * (3 + 3 + 2)
    assert table["bytes"].is_monotonic_increasing
    app.button_group(key="explore-kind").set_value("random").run()
    assert not app.exception
