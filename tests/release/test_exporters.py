"""Runs for other tools, read back by those tools."""

from pathlib import Path

import numpy as np
import pytest

from contrastive_core import runs
from contrastive_core.cli.main import main
from contrastive_core.compare.adapter import Adapter
from contrastive_core.compare.embed import data_of, embed_run, from_weights
from contrastive_core.exchange import exporters as exporter
from contrastive_core.exchange.exporters import _cell, export_tensorboard, save_adapter

RUN = "sup_con-digits"


def test_onnx_gives_what_torch_gives(tmp_path: Path) -> None:
    """z is h behind the head: both are tried at once."""
    onnxruntime = pytest.importorskip("onnxruntime")
    out = tmp_path / "encoder.onnx"
    assert main(["export", RUN, "--to", "onnx", "--out", str(out), "--layer", "z"]) == 0
    run = runs.load(RUN)
    dataset = data_of(run, "test")
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    (given,) = session.run(None, {"images": dataset.images[:50].astype(np.float32) / 255})
    wanted = from_weights(run, dataset, "cpu")["z"].features[:50]
    np.testing.assert_allclose(given, wanted, 1e-5, 1e-5)
    assert session.get_outputs()[0].name == "z"
    assert [p.name for p in tmp_path.glob("*.onnx*")] == ["encoder.onnx"]  # one file, no parts


def test_an_adapter_in_onnx_gives_what_numpy_gives(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    adapter = Adapter("ridge", *(rng.normal(size=shape).astype(np.float32) for shape in ((12, 8), 8)))
    save_adapter(adapter, tmp_path / "map.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "map.onnx"), providers=["CPUExecutionProvider"])
    rows = rng.normal(size=(50, 12)).astype(np.float32)
    np.testing.assert_allclose(session.run(None, {"old": rows})[0], adapter(rows), atol=1e-5)


def test_an_onnx_file_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it differs a little, or gives no number at all."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(exporter, "_write", lambda model, example, path, layer: None)
    for worst in (2e-5, float("inf"), float("nan")):
        monkeypatch.setattr(exporter, "worst_difference", lambda *_, worst=worst: (worst, 64))
        with pytest.raises(ValueError, match="nothing was written"):
            exporter.export_onnx(runs.load(RUN), tmp_path / "e.onnx")
    assert list(tmp_path.glob("*onnx*")) == []


def test_tensorboard_reads_scalars_and_projector(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, out = runs.load(RUN), tmp_path / "log"
    assert main(["export", RUN, "--to", "tensorboard", "--out", str(out), "--device", "cpu"]) == 0
    events = EventAccumulator(str(out)).Reload()
    lines = [line for line in run.metrics() if "images_per_s" not in line]
    losses = events.Scalars("epoch/loss")
    assert [e.step for e in losses] == [line["step"] for line in lines if "loss" in line]
    np.testing.assert_allclose([e.value for e in losses], [line["loss"] for line in lines if "loss" in line], 1e-6)
    (config,) = out.rglob("projector_config.pbtxt")
    (tensors,) = out.rglob("tensors.tsv")
    rows = embed_run(run, "test", "h", "cpu")
    np.testing.assert_allclose(np.loadtxt(tensors, delimiter="\t"), rows.features, 1e-4, 1e-6)
    (table,) = out.rglob("metadata.tsv")
    first = table.read_text().splitlines()[:2]
    assert first == ["id\tclass", f"{rows.ids[0]}\t{rows.class_name(int(rows.labels[0]))}"]
    assert "sprite.png" in config.read_text()
    assert len(list(out.rglob("sprite.png"))) == 1
    with pytest.raises(ValueError, match="holds something"):
        export_tensorboard(run, out)


def test_cells_have_no_tabs() -> None:
    assert _cell("a\tb\nc") == "a b c"
    assert _cell("") == "–"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nobody", "--to", "onnx", "--out", "e.onnx"], "nobody"),
        ([RUN, "--to", "onnx", "--out", "e.pt"], "must end in .onnx"),
        ([RUN, "--to", "onnx", "--out", "nowhere/e.onnx"], "there is no folder"),
        ([RUN, "--to", "tensorboard", "--out", "file"], "holds something"),
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
    (tmp_path / "file").write_text("")
    assert main(["export", *arguments]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("to", ["onnx", "tensorboard"])
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], to: str
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    out = tmp_path / ("e.onnx" if to == "onnx" else "log")
    assert main(["export", RUN, "--to", to, "--out", str(out)]) == 2
    assert f"contrastive-lab[{to}]" in capsys.readouterr().err
