"""An encoder of images with five bands as ONNX."""

from pathlib import Path

import numpy as np
import pytest
from banded_images import folder, trained

from contrastive_core.compare.embed import data_of, from_weights
from contrastive_core.exchange.exporters import export_onnx

__all__ = ["folder"]


def test_onnx_takes_all_bands(folder: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    run = trained(folder)
    export_onnx(run, tmp_path / "encoder.onnx")
    dataset = data_of(run, "test")
    session = onnxruntime.InferenceSession(str(tmp_path / "encoder.onnx"), providers=["CPUExecutionProvider"])
    (given,) = session.run(None, {"images": np.asarray(dataset.images[:8]).astype(np.float32) / 255})
    assert dataset.images.shape[1] == 5
    np.testing.assert_allclose(given, from_weights(run, dataset, "cpu")["h"].features[:8], 1e-4, 1e-5)
