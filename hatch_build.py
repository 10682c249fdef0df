"""Puts what lies beside the packages into the wheel: the files that pyproject.toml lists, and the catalog of methods,
losses and metrics where the builder can import them. Without it the app makes it at its first start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Bundle(BuildHookInterface):  # type: ignore[type-arg]
    """Not for an editable installation, which finds them in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            places = {name: f"contrastive_lab/bundle/{name}" for name in self.config["bundle"]}
            build_data["force_include"] |= places
            cards = Path(self.root) / "build" / "cards.json"
            cards.unlink(missing_ok=True)
            subprocess.run([sys.executable, "-m", "contrastive_core.engine.catalog"], cwd=self.root, check=False)
            if cards.exists():
                build_data["force_include"][str(cards)] = "contrastive_core/base/cards.json"
