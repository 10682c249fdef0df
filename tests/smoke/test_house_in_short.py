"""The app starts without torch, and nothing is left to tidy; tests/unit/house holds all rules."""

import subprocess
import sys

from contrastive_core.base.storage import ROOT


def test_the_server_starts_without_torch() -> None:
    code = "import sys, app\nassert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_ruff_is_content() -> None:
    done = subprocess.run([sys.executable, "-m", "ruff", "check", "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
