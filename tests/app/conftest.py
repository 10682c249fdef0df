"""What every page needs: the catalog of what is registered."""

import importlib

import pytest
from clip_runs import clip_home, clip_run
from sample_desk import Desk

from contrastive_core.base.storage import ROOT
from contrastive_core.engine import client, jobs, process
from contrastive_lab.samples import bench

__all__ = ["clip_home", "clip_run"]


@pytest.fixture(autouse=True)
def catalog_of_pages(made_catalog: None) -> None:
    """Made before a page is drawn."""


@pytest.fixture(autouse=True)
def calls_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short calls need no worker: torch is loaded here."""

    def call(function: str, *arguments: object) -> object:
        module, _, name = function.partition(":")
        made = getattr(importlib.import_module(module), name)
        return getattr(made, "body", made)(*arguments)

    monkeypatch.setattr(client, "call", call)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """What the Samples page hands to its bench, and what that reports."""
    desk = Desk()
    monkeypatch.setattr(bench, "draw_bench", desk.draw)
    monkeypatch.setattr(bench, "reported", lambda key: desk.report)
    return desk


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would be started, instead of starting it; the folder is that of the project."""
    started: list[str] = []
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(process, "spawn", lambda name, *a, **k: started.append(name))
    monkeypatch.setattr(jobs.Job, "start", lambda question, **_: started.append(question.key))
    return started
