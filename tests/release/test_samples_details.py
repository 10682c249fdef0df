"""The Samples page in a browser where nothing has a label."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import SLOW

from contrastive_core.base.storage import ROOT
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet


def test_relabel_is_off_with_a_reason_where_nothing_has_a_label(
    serve: Callable[..., str], page: Any, tmp_path: Path
) -> None:
    reason = "Relabel is off: these data have no labels"
    rows = EmbeddingSet(np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTRASTIVE_LAB_HOME", str(tmp_path))
        name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(rows, "bare.npy")
        make_table(request_of(name, "train", "sup_con"))
    app = serve(ROOT / "app.py", environment={"CONTRASTIVE_LAB_HOME": str(tmp_path)})
    page.goto(f"{app}/samples?on={name}&list=outlier")
    bench = page.locator(".bench")
    bench.get_by_text(reason).wait_for(timeout=SLOW)
    relabel = bench.locator(".what").nth(1)
    assert relabel.is_disabled()
    assert relabel.get_attribute("title").startswith(reason)
    assert bench.locator("#" + relabel.get_attribute("aria-describedby")).is_visible()
    assert not bench.locator("select").is_visible()
    sample = bench.locator(".name").inner_text()
    page.locator("body").press("r")  # does nothing, keeps and drops do
    assert bench.locator(".name").inner_text() == sample
    page.locator("body").press("k")
    assert bench.locator(".name").inner_text() != sample
