"""Loops of other libraries: each declares its loss, a planted fault is named, and the loop without one is silent."""

import pytest
import torch

from benchmarks import _library_loops as library
from benchmarks import loop_doctor
from contrastive_core import watch
from contrastive_core.recording import loop_checks


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_doctor, "STEPS", 3)
    monkeypatch.setattr(loop_checks, "CONFIRMED", 2)


@pytest.mark.parametrize("title", library.PLANTED)
def test_planted_faults_are_named(title: str) -> None:
    name, make, declared = library.PLANTED[title]
    assert loop_doctor.reported(make(None), declared, seed=0)[0] == [name]


@pytest.mark.parametrize("kind", [None, torch.bfloat16])
@pytest.mark.parametrize("title", library.HEALTHY)
def test_healthy_loops_are_silent(title: str, kind: torch.dtype | None) -> None:
    make, declared = library.HEALTHY[title]
    assert loop_doctor.reported(make(kind), declared, seed=0)[0] == []


def test_settings_that_are_passed_come_first_and_other_losses_are_not_checked() -> None:
    with watch("own", library.NT_XENT, temperature=0.3) as w:
        assert (w.settings.declared.name, w.settings.loss.temperature) == ("nt_xent", 0.3)
    with watch("other", torch.nn.MSELoss()) as w:
        assert w.settings.loss is None
    assert "no equivalent loss" in w.run.status()["note"]
