"""The documentation site builds without warnings and holds a page for everything that is registered."""

import subprocess
import sys

import pytest

from contrastive_core import losses, methods
from contrastive_core.base.storage import ROOT

pytest.importorskip("sphinx")


def test_site_builds_without_warnings(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = {f"generated/losses/{name}.html" for name in losses.names()}
    pages |= {f"generated/methods/{name}.html" for name in methods.names()}
    assert not [page for page in pages if not (tmp_path / page).is_file()]
    fetched = [p for p in tmp_path.rglob("*.html") if '<script src="http' in p.read_text("utf-8")]
    assert not fetched, "the site must work offline"
