"""Compare says that test labels hold suspects, where they could change the order of runs."""

import numpy as np
import pytest

from contrastive_core import runs
from contrastive_core.base.storage import ROOT
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import request_of
from contrastive_lab.compare.verdict import order_may_change, undecided


def test_who_leads_by_how_much_and_what_may_fall() -> None:
    a = np.array([1, 1, 1, 0, 0, 1.0])
    b = np.array([1, 1, 0, 0, 0, 0.0])

    def may(*doubtful: int) -> bool:
        return order_may_change(np.stack([a, b]), np.isin(np.arange(6), doubtful))

    assert may(2)  # the leader alone is right: two may be lost of a lead of two
    assert not may(3)  # both are wrong: one
    assert may(3, 4)
    assert not may(0, 1)  # both are right, and so say the same
    assert not order_may_change(np.stack([a, a]), np.ones(6, bool))  # nobody leads


def test_what_was_decided_is_no_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = {**runs.load("simclr-digits").config, "dataset": "digits_mislabeled"}
    run = runs.create("planted", config)
    run.write("weights.safetensors", runs.load("simclr-digits").weights.read_bytes())
    make_table(request_of(run.name, "test"))
    request = request_of("planted", "test", "nt_xent")
    before = undecided(request)
    assert 3 <= len(before) <= 6
    sample_annotations.add(request.decisions(), before[0], "drop")
    assert undecided(request)[: len(before) - 1] == before[1:]  # the list opens at the first of them
