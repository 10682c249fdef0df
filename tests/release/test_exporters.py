"""Encoders and adapters as ONNX, read back by onnxruntime."""

import sys
from pathlib import Path

import numpy as np
import pytest
from banded_images import folder, trained

from contrastive_core import runs
from contrastive_core.cli.main import main
from contrastive_core.compare.adapter import Adapter
from contrastive_core.compare.embed import data_of, from_weights
from contrastive_core.exchange import exporters

__all__ = ["folder"]
RUN = "sup_con-digits"


def test_onnx_gives_what_torch_gives(tmp_path: Path) -> None:
    """z is h behind the head: both are tried at once."""
    onnxruntime = pytest.importorskip("onnxruntime")
    (place := tmp_path / "exported").mkdir()
    out = place / "encoder.onnx"
    assert main(["export", RUN, "--out", str(out), "--layer", "z"]) == 0
    run = runs.load(RUN)
    dataset = data_of(run, "test")
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    (given,) = session.run(None, {"images": dataset.images[:50].astype(np.float32) / 255})
    np.testing.assert_allclose(given, from_weights(run, dataset, "cpu")["z"].features[:50], 1e-5, 1e-5)
    assert session.get_outputs()[0].name == "z"
    assert list(place.iterdir()) == [out]  # one file, no parts


def test_onnx_takes_all_bands(folder: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    run = trained(folder)
    exporters.export_onnx(run, tmp_path / "encoder.onnx")
    dataset = data_of(run, "test")
    session = onnxruntime.InferenceSession(str(tmp_path / "encoder.onnx"), providers=["CPUExecutionProvider"])
    (given,) = session.run(None, {"images": np.asarray(dataset.images[:8]).astype(np.float32) / 255})
    assert dataset.images.shape[1] == 5
    np.testing.assert_allclose(given, from_weights(run, dataset, "cpu")["h"].features[:8], 1e-4, 1e-5)


def test_an_adapter_in_onnx_gives_what_numpy_gives_or_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    rng, out = np.random.default_rng(0), tmp_path / "map.onnx"
    adapter = Adapter("ridge", *(rng.normal(size=shape).astype(np.float32) for shape in ((12, 8), 8)))
    exporters.save_adapter(adapter, out)
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    rows = rng.normal(size=(50, 12)).astype(np.float32)
    np.testing.assert_allclose(session.run(None, {"old": rows})[0], adapter(rows), atol=1e-5)
    out.unlink()
    for error in (2e-5, np.nan):
        monkeypatch.setattr(Adapter, "__call__", lambda self, x, error=error: np.full((len(x), 8), error))
        with pytest.raises(ValueError, match="nothing was written"):
            exporters.save_adapter(adapter, out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nobody", "--out", "e.onnx"], "nobody"),
        ([RUN, "--out", "e.pt"], "must end in .onnx"),
        ([RUN, "--out", "nowhere/e.onnx"], "there is no folder"),
        ([RUN, "--out", "no_extra.onnx"], "contrastive-lab[onnx]"),
    ],
)
def test_bad_input_has_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["export", *arguments]) == 2
    assert sentence in capsys.readouterr().err
