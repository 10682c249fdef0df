"""Compare names the groups of samples that lie together in one space and apart in the other."""

import pytest
from opened_page import opened

from contrastive_core.compare.comparison import comparison_request
from contrastive_core.compare.differences import Differences, differences_request
from contrastive_core.engine import answers
from contrastive_core.spaces.space import Space
from contrastive_lab import state

RUNS = ("simclr-shapes", "sup_con-shapes")


def test_the_groups_that_differ_are_named_and_can_be_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = [Space.of_name(name) for name in RUNS]
    found = Differences.of(answers.make("differences", differences_request(spaces), device="cpu").meta)
    assert found.groups
    answers.make("comparison", comparison_request(spaces), device="cpu")
    app = opened("compare", monkeypatch, runs=",".join(RUNS), view="Disagreements", disagree="Groups")
    assert not app.exception
    shown = [part.value.replace("\\", "") for part in app.markdown]
    for group in found.groups:
        assert f"**{group.sentence(RUNS)}**" in shown
    assert f"**{len(found.groups)} groups** lie together in one space and apart in the other." in shown
    said = [part.value.replace("\\", "") for part in app.caption]
    assert str(found.notes[0]) in said
    first = found.groups[0]
    button = next(one for one in app.button if one.label == f"Select all {len(first.rows)} on the maps")
    button.click().run()
    assert sorted(app.session_state["selection"][state.data_of(spaces[0])]) == sorted(first.rows)
