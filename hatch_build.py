"""Puts what lies beside the packages into the wheel: the files that pyproject.toml lists."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Bundle(BuildHookInterface):  # type: ignore[type-arg]
    """Not for an editable installation, which finds them in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            places = {name: f"contrastive_lab/bundle/{name}" for name in self.config["bundle"]}
            build_data["force_include"] |= places
