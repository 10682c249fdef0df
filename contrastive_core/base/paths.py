"""Folders of users' runs, shipped runs, and files that can be made again. Torch-free. In a checkout everything lies
in it. Installed from a wheel, what stands beside the packages in a checkout (app.py, pages, sweeps, shipped runs)
lies in `BUNDLE`, and what users make in the folder that their system keeps for an application's data."""

import os
from pathlib import Path

NAME = "contrastive-lab"
ROOT = Path(__file__).resolve().parents[2]  # the folder that the packages lie in


def is_checkout() -> bool:
    """Return whether this is the project's own folder, and not a place where it was installed."""
    return (ROOT / "app.py").is_file() and (ROOT / "pyproject.toml").is_file()


BUNDLE = ROOT if is_checkout() else ROOT / "contrastive_lab" / "bundle"
SHIPPED = BUNDLE / "checkpoints" / "shipped"
IMAGES = BUNDLE / "checkpoints" / "images"  # decoded test images of what the shipped runs are of


def runs_home() -> Path:
    """Users' runs: $CONTRASTIVE_LAB_RUNS; else `checkpoints/runs` of a checkout, `runs` in the user's data folder."""
    if folder := os.environ.get("CONTRASTIVE_LAB_RUNS"):
        return Path(folder)
    return ROOT / "checkpoints" / "runs" if is_checkout() else _user_data() / "runs"


def data_home() -> Path:
    """The folder of caches: $CONTRASTIVE_LAB_HOME; else `.cache` of a checkout, `cache` in the user's data folder."""
    if folder := os.environ.get("CONTRASTIVE_LAB_HOME"):
        return Path(folder)
    return ROOT / ".cache" if is_checkout() else _user_data() / "cache"


def _user_data() -> Path:
    """The folder that the system keeps for this application's data of this user."""
    import platformdirs

    return platformdirs.user_data_path(NAME, appauthor=False)


def follow_links() -> bool:
    """Return whether links inside image folders are followed: where $CONTRASTIVE_LAB_FOLLOW_LINKS is 1."""
    return os.environ.get("CONTRASTIVE_LAB_FOLLOW_LINKS") == "1"
