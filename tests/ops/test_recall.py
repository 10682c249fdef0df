"""The lowest recall of several searches."""

from __future__ import annotations

from contrastive_core.ops.recall import lowest_recall


def test_exact_searches_have_none() -> None:
    assert lowest_recall([]) is None
    assert lowest_recall([None, None]) is None
    assert lowest_recall([None, 0.9, 0.75]) == 0.75
    assert lowest_recall([0.0, None]) == 0.0
