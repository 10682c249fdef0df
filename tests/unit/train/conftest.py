"""Trainings in tests write every line of metrics at once, so a test can act after a chosen step."""

import pytest

from contrastive_core.train import loop


@pytest.fixture(autouse=True)
def immediate_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "FLUSH_SECONDS", 0.0)
