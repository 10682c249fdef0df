"""The cut-off on the list of likely wrong labels: what it says, draws and leaves."""

from collections.abc import Callable

import pytest
from sample_desk import Desk, opened, text_of

from contrastive_core import runs
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import request_of
from contrastive_lab.components.cut_off import CutOff
from contrastive_lab.samples import lists

pytestmark = pytest.mark.usefixtures("no_processes")


def test_every_cut_off_counts_and_leaves_what_is_above(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.load("simclr-digits")
    table = make_table(request_of(run.name, "test"))
    score = table.score("mislabeled")
    drawn: list[tuple[CutOff, Callable[[], None]]] = []
    monkeypatch.setattr(lists, "draw_cut_off", lambda *a: drawn.append((a[0], a[2])))
    app = opened(run=run.name, split="test")
    for cut in (0.02, 0.06, 0.1):
        app = opened(run=run.name, split="test", cut=str(cut))
        shown, _ = drawn[-1]
        assert shown.cut == pytest.approx(cut)
        count = int((score > cut).sum())
        assert count > 0
        assert desk.place == f"1 of {count}"
        assert shown.heads[round(cut * 50)] == f"{count} with P(wrong) > {cut:.2f}"
    assert sum(drawn[-1][0].counts) == 360
    opened(run=run.name, split="test", cut="1")
    assert desk.place == "1 of 360"  # nothing above: all, the likeliest first
    opened(run=run.name, split="test", cut="0.02", every="yes")
    assert desk.place == "1 of 360"
    assert not any(said in text_of(app) for said in ("95 %", "look wrong", "labels are wrong", "wrong labels of"))
    assert not app.exception
