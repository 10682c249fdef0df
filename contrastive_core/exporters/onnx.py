"""A run's encoder as an ONNX file, which is kept only if it gives what torch gives. The file takes `images` (n, c,
height, width) in [0, 1] at the size that the run was trained on, any n, and gives `h` or `z` in float32."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from contrastive_core.data.augmentations import to_float
from contrastive_core.evaluation.embed import data_of, load_model
from contrastive_core.records.run import Run
from contrastive_core.storage import atomic

TOLERANCE = 1e-5  # of each number, relative where it is above 1
CHECKED = (1, 37)  # images of the two batches that are compared


def export_onnx(run: Run, out: Path, layer: str = "h") -> dict[str, Any]:
    """Write the encoder; returns `out`, `inputs`, `width`, and the `worst` difference from torch. Raises: ValueError
    where the extra is missing, the run has no weights or data, or onnxruntime gives something else than torch; then
    nothing is written."""
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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "encoder.onnx"
        _write(model, images[:2], path, layer)
        worst, width = worst_difference(model, images, path)
        if not worst <= TOLERANCE:
            problem = f"onnxruntime gives what differs from torch by {worst:.2g}, more than {TOLERANCE:g}"
            raise ValueError(f"{problem}: nothing was written")
        atomic.write_bytes(out, path.read_bytes(), shared=True, parents=False)
    return {"out": str(out), "inputs": ["n", *images.shape[1:]], "width": width, "worst": worst}


def worst_difference(model: nn.Module, images: Tensor, path: Path) -> tuple[float, int]:
    """|Δ| / max(1, |x|) at its largest, over batches of two sizes, and the width of the rows."""
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
