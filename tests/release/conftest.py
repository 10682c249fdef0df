"""What trainings and recordings need as in the other levels: metrics at once, and no step dropped."""

import pytest
from clip_runs import clip_home, clip_run

from contrastive_core.recording import recorder
from contrastive_core.train import loop

__all__ = ["clip_home", "clip_run"]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "FLUSH_SECONDS", 0.0)
    monkeypatch.setattr(recorder, "WAITING", 1000)
