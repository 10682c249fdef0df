"""Folders of users' runs, shipped runs and caches. Torch-free. In a checkout they are inside it. In an installation
from a wheel, files that a checkout holds next to the packages (app.py, pages, sweeps, shipped runs) are in `BUNDLE`,
and users' files are in the system's folder for application data."""

import os
from pathlib import Path

NAME = "contrastive-lab"
ROOT = Path(__file__).resolve().parents[2]  # the folder of the packages


def is_checkout() -> bool:
    """Return whether this is a checkout of the project and not an installation."""
    return (ROOT / "app.py").is_file() and (ROOT / "pyproject.toml").is_file()


BUNDLE = ROOT if is_checkout() else ROOT / "contrastive_lab" / "bundle"
SHIPPED = BUNDLE / "checkpoints" / "shipped"
IMAGES = BUNDLE / "checkpoints" / "images"  # decoded test images of the shipped runs' data sets


def runs_home() -> Path:
    """Return the folder of users' runs: $CONTRASTIVE_LAB_RUNS, else a folder in the checkout or the user's data."""
    if folder := os.environ.get("CONTRASTIVE_LAB_RUNS"):
        return Path(folder)
    return ROOT / "checkpoints" / "runs" if is_checkout() else _user_data() / "runs"


def data_home() -> Path:
    """Return the folder of caches: $CONTRASTIVE_LAB_HOME, a checkout's `.cache`, or `cache` in the user data."""
    if folder := os.environ.get("CONTRASTIVE_LAB_HOME"):
        return Path(folder)
    return ROOT / ".cache" if is_checkout() else _user_data() / "cache"


def _user_data() -> Path:
    """Return the system's folder for this user's application data."""
    import platformdirs

    return platformdirs.user_data_path(NAME, appauthor=False)


def follow_links() -> bool:
    """Return whether links inside image folders are followed ($CONTRASTIVE_LAB_FOLLOW_LINKS is 1)."""
    return os.environ.get("CONTRASTIVE_LAB_FOLLOW_LINKS") == "1"
