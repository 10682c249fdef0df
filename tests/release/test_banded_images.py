"""Images of five bands in TensorBoard's projector."""

from pathlib import Path

import pytest
from banded_images import folder, trained

from contrastive_core.exchange.exporters import export_tensorboard

__all__ = ["folder"]


def test_they_are_written_for_tensorboard(folder: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    run = trained(folder)
    export_tensorboard(run, tmp_path / "board")
    assert list((tmp_path / "board").rglob("*sprite*"))
