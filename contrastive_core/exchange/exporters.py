"""Export of a run's encoder as an ONNX file, of a run to TensorBoard, and of an adapter between two models.

The ONNX file is kept only if its output matches torch's. It takes `images` (n, c, height, width) in [0, 1] at the
run's training size, for any n, and returns `h` or `z` in float32. The log for TensorBoard holds metrics as scalars,
settings, and the embedding for the projector; TensorFlow is not needed.

An adapter is an `.npz` with the arrays `matrix` (d, e) and `offset` (e), or ONNX with the input `old` (n, d) and the
output `new` (n, e), both float32. Both take vectors of the old model, scale them to length 1, multiply by the matrix,
add the offset and scale again."""

import json
import math
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from contrastive_core.base import storage
from contrastive_core.base.lock import scratch_folder
from contrastive_core.base.progress import OnProgress, fraction_of, ignore_progress
from contrastive_core.compare.adapter import Adapter
from contrastive_core.compare.embed import data_of, embed_run, load_model
from contrastive_core.data.augmentations import to_float
from contrastive_core.data.dataset import visible
from contrastive_core.runs.run import Run
from contrastive_core.spaces.embedding_set import EmbeddingSet

TOLERANCE = 1e-5  # of each value, relative above 1
CHECKED = (1, 37)  # images of the two batches that are compared
MOST = 10_000  # maximum rows for the projector
PICTURE = 8192  # maximum side of its picture in pixels
OF_A_STEP = "images_per_s"  # a key of step lines only


class OnnxExport(TypedDict):
    """A written ONNX file: its path, the shape of its input, the width of its rows, and their difference from torch."""

    out: str
    inputs: list[str | int]
    width: int
    worst: float


class TensorBoardExport(TypedDict):
    """A written folder for TensorBoard, with its numbers of scalars and rows."""

    out: str
    scalars: int
    rows: int


def export_onnx(run: Run, out: Path, layer: str = "h") -> OnnxExport:
    """Write the encoder as ONNX. Raises: ValueError if the extra is not installed, the run has no weights or data, or
    onnxruntime's output differs from torch's; then nothing is written."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ModuleNotFoundError as error:
        raise ValueError(f"ONNX needs {error.name}, which is missing: pip install 'contrastive-lab[onnx]'") from None
    dataset = data_of(run, "test")
    method = load_model(run, dataset, "cpu")
    model = nn.Sequential(method.encoder, *([method.head] if layer == "z" else [])).eval()
    rows = np.resize(np.arange(len(dataset)), max(CHECKED))
    images = to_float(torch.from_numpy(np.array(dataset.images[rows])))
    with scratch_folder() as folder:
        path = folder / "encoder.onnx"
        _write(model, images[:2], path, layer)
        worst, width = worst_difference(model, images, path)
        if not worst <= TOLERANCE:
            problem = f"onnxruntime gives what differs from torch by {worst:.2g}, more than {TOLERANCE:g}"
            raise ValueError(f"{problem}: nothing was written")
        storage.write_bytes(out, path.read_bytes(), shared=True, parents=False)
    return {"out": str(out), "inputs": ["n", *images.shape[1:]], "width": width, "worst": worst}


def worst_difference(model: nn.Module, images: Tensor, path: Path) -> tuple[float, int]:
    """Return the largest |Δ| / max(1, |x|) over batches of two sizes, and the width of the rows."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst, width = 0.0, 0
    for n in CHECKED:
        with torch.no_grad():
            wanted = model(images[:n]).numpy()
        (given,) = session.run(None, {"images": images[:n].numpy()})
        if given.shape != wanted.shape:
            return float("inf"), 0
        share = np.abs(given - wanted) / np.maximum(1, np.abs(wanted))
        worst, width = max(worst, float(share.max(initial=0))), wanted.shape[1]
    return worst, width


def _write(model: nn.Module, example: Tensor, path: Path, layer: str) -> None:
    torch.onnx.export(
        model,
        (example,),
        str(path),
        input_names=["images"],
        output_names=[layer],
        dynamic_shapes=({0: torch.export.Dim("n", min=1)},),
        external_data=False,
        dynamo=True,
        verbose=False,
    )


def export_tensorboard(
    run: Run,
    out: Path,
    split: str = "test",
    layer: str = "h",
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> TensorBoardExport:
    """Write a log folder for TensorBoard. Raises: ValueError if the extra is not installed, the folder is not empty, or
    the run has no weights or data."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError:
        text = "this needs tensorboard, which is missing: pip install 'contrastive-lab[tensorboard]'"
        raise ValueError(text) from None
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} is there and holds something: give a new folder")
    rows = embed_run(run, split, layer, device, fraction_of(on_progress, "embedding"))
    dataset = data_of(run, split)
    on_progress("the log", None)
    writer = SummaryWriter(log_dir=str(out))
    try:
        count = _scalars(writer, run)
        config = json.dumps(run.config, indent=1, default=str)
        writer.add_text("settings", "\n".join(f"    {line}" for line in config.split("\n")))
        shown = _embedding(writer, rows, dataset.images, f"{layer}-{split}")
    finally:
        writer.close()
    return {"out": str(out), "scalars": count, "rows": shown}


def _scalars(writer: Any, run: Run) -> int:
    """Write every number of the metrics by step, per step and per epoch; return their count."""
    count = 0
    for line in run.metrics():
        kind = "step" if OF_A_STEP in line else "epoch"
        for name, value in line.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if is_number and name not in ("step", "epoch"):
                writer.add_scalar(f"{kind}/{name}", value, int(line.get("step") or 0))
                count += 1
    return count


def _embedding(writer: Any, rows: EmbeddingSet, images: Any, tag: str) -> int:
    """Write the projector's files: vectors, ids, classes and one picture of all images; return the number of rows."""
    shown = np.arange(len(rows))
    if len(rows) > MOST:
        shown = np.sort(np.random.default_rng(0).permutation(len(rows))[:MOST])
    labels = ["" if rows.labels is None else rows.class_name(int(rows.labels[i])) for i in shown.tolist()]
    table = [[_cell(rows.ids[i]), _cell(c)] for i, c in zip(shown.tolist(), labels, strict=True)]
    side = math.ceil(math.sqrt(len(shown))) * max(images.shape[-2:])
    pictures = None
    if side <= PICTURE and images.shape[-1] == images.shape[-2]:
        pictures = torch.from_numpy(np.array(images[shown])).float() / 255
        pictures = pictures[:, visible(pictures.shape[1])].expand(-1, 3, -1, -1)
    writer.add_embedding(
        torch.from_numpy(rows.features[shown]), table, pictures, 0, tag, metadata_header=["id", "class"]
    )
    return len(shown)


def _cell(text: object) -> str:
    """Return text for a cell of a tab-separated table, without tabs or line breaks."""
    return "".join(c if c.isprintable() else " " for c in str(text)) or "–"


# --- adapters between two models ---


CHECKED_VECTORS = 100  # random vectors


def save_adapter(adapter: Adapter, out: Path) -> None:
    """Write an adapter. Raises ValueError if `out` ends in .onnx and the extra is not installed, or onnxruntime gives
    other vectors; then nothing is written."""
    if out.suffix == ".onnx":
        storage.write_bytes(out, _onnx(adapter), shared=True, parents=False)
        return
    with storage.writing(out, shared=True, parents=False) as file:
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
    x = np.random.default_rng(0).normal(size=(CHECKED_VECTORS, d)).astype(np.float32)
    (given,) = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"old": x})
    if not (worst := float(np.abs(given - adapter(x)).max())) <= TOLERANCE:
        raise ValueError(f"onnxruntime differs by {worst:.2g}, more than {TOLERANCE:g}: nothing was written")
    return content
