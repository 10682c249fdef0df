"""Nothing is dropped, however slow the machine; one test asks for it."""

import pytest

from contrastive_core.recording import recorder


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "WAITING", 1000)
