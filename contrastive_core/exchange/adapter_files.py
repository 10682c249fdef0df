"""Adapters between two models as files: `.npz` with the arrays `matrix` (d, e) and `offset` (e), or ONNX.

Both take vectors of the old model, scale them to length 1, multiply by the matrix, add the offset and scale again. The
ONNX file has the input `old` (n, d) and the output `new` (n, e), both float32."""

from pathlib import Path

import numpy as np

from contrastive_core.base import safe_files
from contrastive_core.compare.adapter import Adapter

TOLERANCE = 1e-5
CHECKED = 100  # random vectors


def save_adapter(adapter: Adapter, out: Path) -> None:
    """Write an adapter. Raises ValueError if `out` ends in .onnx and the extra is not installed, or onnxruntime gives
    other vectors; then nothing is written."""
    if out.suffix == ".onnx":
        safe_files.write_bytes(out, _onnx(adapter), shared=True, parents=False)
        return
    with safe_files.writing(out, shared=True, parents=False) as file:
        np.savez(file, matrix=adapter.matrix, offset=adapter.offset, kind=adapter.kind)


def _onnx(adapter: Adapter) -> bytes:
    try:
        import onnxruntime
        from onnx import TensorProto, checker, helper, numpy_helper
    except ModuleNotFoundError as error:
        raise ValueError(f"ONNX needs {error.name}, which is missing: pip install 'contrastive-lab[onnx]'") from None
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
    x = np.random.default_rng(0).normal(size=(CHECKED, d)).astype(np.float32)
    (given,) = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"old": x})
    if not (worst := float(np.abs(given - adapter(x)).max())) <= TOLERANCE:
        raise ValueError(f"onnxruntime differs by {worst:.2g}, more than {TOLERANCE:g}: nothing was written")
    return content
