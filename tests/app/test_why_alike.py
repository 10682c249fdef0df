"""Explore says why a sample and a neighbor are alike, once it is asked."""

from __future__ import annotations

import pytest
from opened_page import opened

from contrastive_core import runs
from contrastive_core.engine import answers
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, state


def test_a_neighbor_is_explained_by_its_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.load("simclr-shapes")
    space = Space.of_run(run, "test")
    app = opened("explore", monkeypatch, run=run.name, map="pca")
    app.session_state["selection"] = {state.data_of(space): [3]}
    app.run()
    switch = next(one for one in app.toggle if one.label == "Why are they alike?")
    rows = space.rows()
    assert rows is not None
    near = int(cache.nearest(rows.content_hash, 3, 11, rows)[0][0])
    made = answers.make("likeness", {"space": space.values, "ids": [rows.ids[3], rows.ids[near]]}, device="cpu")
    switch.set_value(True).run()
    assert not app.exception
    (said,) = [part.value for part in app.caption if "is a sum over pairs of patches" in part.value]
    assert f"The similarity {made.meta['similarity']:.2f}" in said.replace("\\", "")
    assert "effect is not clear" not in said
