"""The map between two models on Compare: what it keeps with its bound, what to encode first, and its file."""

import numpy as np
import pytest
from opened_page import opened

from contrastive_core.compare.adapter import adapter_request
from contrastive_core.compare.comparison import comparison_request
from contrastive_core.engine import answers
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space


def test_the_map_says_what_it_keeps_once_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 8)).astype(np.float32)
    turned = (x @ np.linalg.qr(rng.normal(size=(8, 8)))[0]).astype(np.float32)
    keys = [loaded_vectors.save_vectors(EmbeddingSet(rows), name) for rows, name in ((x, "old"), (turned, "new"))]
    names = [loaded_vectors.PREFIX + key for key in keys]
    spaces = [Space.of_name(name, "test", "h") for name in names]
    answers.make("comparison", comparison_request(spaces, every_score=False))
    answers.make("calibration", {"spaces": [space.values for space in spaces]})
    app = opened("compare", monkeypatch, runs=",".join(names), view="Similarity")
    assert not app.exception
    assert not any("best answers" in m.value for m in app.markdown)
    answers.make("adapter", adapter_request(*spaces))
    app.toggle(key="compare-adapter").set_value(True).run()
    assert not app.exception
    (said,) = [m.value for m in app.markdown if "best answers" in m.value]
    assert said.startswith(("The map keeps **9", "The map keeps **100"))
    table = next(d.value for d in app.dataframe if "at least, %" in d.value)
    assert len(table) == 4
    assert "orthogonal Procrustes" in table["map"].iloc[:3].tolist()
    assert (table["kept, %"].iloc[:3] >= table["at least, %"].iloc[:3]).all()
