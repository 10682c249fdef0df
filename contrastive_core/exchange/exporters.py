"""Export of a run's encoder, and of an adapter between two models, as ONNX. A file is kept only if onnxruntime gives
the same output as this library.

The encoder takes `images` (n, c, height, width) in [0, 1] at the run's training size, for any n, and returns `h` or `z`
in float32.

An adapter is an `.npz` with the arrays `matrix` (d, e) and `offset` (e), or ONNX with the input `old` (n, d) and the
output `new` (n, e), both float32. Both take vectors of the old model, scale them to length 1, multiply by the matrix,
add the offset and scale again."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from contrastive_core.base import storage
from contrastive_core.base.lock import scratch_folder
from contrastive_core.compare.adapter import Adapter
from contrastive_core.compare.embed import data_of, load_model
from contrastive_core.data.augmentations import to_float
from contrastive_core.runs.run import Run

TOLERANCE = 1e-5  # of each value, relative above 1
CHECKED = (1, 37)  # images of the two batches that are compared
CHECKED_VECTORS = 100  # random vectors of an adapter


def export_onnx(run: Run, out: Path, layer: str = "h") -> dict[str, Any]:
    """Write the encoder as ONNX; return the path, the input's shape, the width of the rows and their largest difference
    from torch. Raises: ValueError if the extra is not installed, the run has no weights or data, or onnxruntime's
    output differs; then nothing is written."""
    onnxruntime = _runtime("onnxscript")
    dataset = data_of(run, "test")
    method = load_model(run, dataset, "cpu")
    model = nn.Sequential(method.encoder, *([method.head] if layer == "z" else [])).eval()
    rows = np.resize(np.arange(len(dataset)), max(CHECKED))
    images = to_float(torch.from_numpy(np.array(dataset.images[rows])))
    with scratch_folder() as folder:
        path = folder / "encoder.onnx"
        torch.onnx.export(
            model,
            (images[:2],),
            str(path),
            input_names=["images"],
            output_names=[layer],
            dynamic_shapes=({0: torch.export.Dim("n", min=1)},),
            external_data=False,
            dynamo=True,
            verbose=False,
        )
        content = path.read_bytes()
    session, worst = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]), 0.0
    for n in CHECKED:
        with torch.no_grad():
            expected = model(images[:n]).numpy()
        (given,) = session.run(None, {"images": images[:n].numpy()})
        worst = max(worst, _difference(given, expected))
    storage.write_bytes(out, content, shared=True, parents=False)
    return {"out": str(out), "inputs": ["n", *images.shape[1:]], "width": expected.shape[1], "worst": worst}


def save_adapter(adapter: Adapter, out: Path) -> None:
    """Write an adapter. Raises ValueError if `out` ends in .onnx and the extra is not installed, or onnxruntime gives
    other vectors; then nothing is written."""
    if out.suffix != ".onnx":
        with storage.writing(out, shared=True, parents=False) as file:
            np.savez(file, matrix=adapter.matrix, offset=adapter.offset, kind=adapter.kind)
        return
    onnxruntime = _runtime()
    from onnx import TensorProto, checker, helper, numpy_helper

    (d, e), node = adapter.matrix.shape, helper.make_node
    nodes = [
        node("LpNormalization", ["old"], ["unit"], axis=1, p=2),
        node("MatMul", ["unit", "matrix"], ["product"]),
        node("Add", ["product", "offset"], ["sum"]),
        node("LpNormalization", ["sum"], ["new"], axis=1, p=2),
    ]
    ends = [helper.make_tensor_value_info(k, TensorProto.FLOAT, ["n", w]) for k, w in (("old", d), ("new", e))]
    weights = [numpy_helper.from_array(getattr(adapter, name), name) for name in ("matrix", "offset")]
    graph = helper.make_graph(nodes, "adapter", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString()
    x = np.random.default_rng(0).normal(size=(CHECKED_VECTORS, d)).astype(np.float32)
    (given,) = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"old": x})
    _difference(given, adapter(x))
    storage.write_bytes(out, content, shared=True, parents=False)


def _runtime(*others: str) -> Any:
    """Return onnxruntime. Raises ValueError if it, onnx or one of `others` is not installed."""
    try:
        *_, runtime = [importlib.import_module(name) for name in ("onnx", *others, "onnxruntime")]
    except ModuleNotFoundError as error:
        raise ValueError(f"ONNX needs {error.name}, which is missing: pip install 'contrastive-lab[onnx]'") from None
    return runtime


def _difference(given: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest |Δ| / max(1, |x|). Raises ValueError above TOLERANCE."""
    worst = float("inf")
    if given.shape == expected.shape:
        worst = float((np.abs(given - expected) / np.maximum(1, np.abs(expected))).max(initial=0))
    if not worst <= TOLERANCE:  # also catches NaN
        raise ValueError(f"onnxruntime's output differs by {worst:.2g}, more than {TOLERANCE:g}: nothing was written")
    return worst
