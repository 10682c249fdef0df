"""`export`: a run as the file or folder of another tool."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from contrastive_core.cli.output import out_path, print_result, progress_of

__all__ = ["export"]


def export(args: Namespace) -> None:
    """Write a run's encoder as ONNX, or its metrics and embedding for TensorBoard."""
    from contrastive_core.records import runs

    out = Path(args.out) if args.to == "tensorboard" else out_path(args.out, ".onnx")
    run = runs.load(args.run)
    with progress_of(args) as on_progress:
        if args.to == "onnx":
            from contrastive_core.exporters.onnx import export_onnx

            on_progress("the encoder", None)
            record = export_onnx(run, out, args.layer)
            text = f"{out}: {args.layer}, {record['width']} wide; {record['worst']:.1g} from torch"
        else:
            from contrastive_core.exporters.tensorboard import export_tensorboard

            record = export_tensorboard(run, out, args.split, args.layer, args.device, on_progress)
            text = f"{out}: {record['scalars']:,} scalars, {record['rows']:,} rows"
            text += f"; tensorboard --logdir {out}"
    print_result(args, {"run": run.name, "to": args.to, **record}, text)
