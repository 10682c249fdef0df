"""Every page opens on a shipped run, the worker answers what pages ask, and the server starts without torch."""

import subprocess
import sys
import time

import pytest
from opened_page import page_on

from contrastive_core.base.storage import ROOT, SHIPPED, runs_home
from contrastive_core.engine.jobs import Job
from contrastive_core.spaces import results

PAGES = ("home", "explore", "loss_lab", "train", "compare", "samples", "runs", "methods")


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_on_a_shipped_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = sorted(path.parent.name for path in SHIPPED.glob("*digits/run.json"))
    assert shipped, "encoders come with the project"
    app = page_on(page, monkeypatch, run=shipped[0])
    assert not app.exception
    assert not app.error
    assert app.title or app.header


def test_the_worker_answers_and_a_refusal_says_why() -> None:
    values = {"method": "simclr", "dataset": "digits", "set": []}
    for path, more, said in (
        (results.path("views", values), [], None),
        (runs_home() / "none", ["color=1"], "unknown setting"),
    ):
        question = Job(f"smoke-{path.name}", path, kind="views", values={**values, "set": more})
        question.start()
        end = time.monotonic() + 120
        while question.is_running():
            assert time.monotonic() < end
            time.sleep(0.02)
        assert (question.failure() is None) if said is None else (said in (question.failure() or ""))
    assert results.read("views", values) is not None


def test_the_server_starts_without_torch() -> None:
    code = "import sys, app\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_ruff_is_content() -> None:
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
