"""`contrastive-lab report RUN... --out report.html`."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime

from contrastive_core.cli.output import out_path, print_result, progress_of
from contrastive_core.records import atomic
from contrastive_lab.report.contents import ReportRequest, gather
from contrastive_lab.report.document import document


def report(args: Namespace) -> None:
    """Write one HTML file of some runs."""
    out = out_path(args.out, ".html", ".htm")
    asked = ReportRequest(args.split, args.layer, args.map, args.device)
    with progress_of(args) as on_progress:
        contents = gather(args.runs, asked, on_progress)
        on_progress("the file", None)
        page = document(contents, datetime.now(UTC).date()).encode()
        atomic.write_bytes(out, page, shared=True, parents=False)
    names = [part.title for part in contents.parts]
    record = {"out": str(out), "bytes": len(page), "runs": names}
    print_result(args, record, f"{out}: {len(page) / 1e6:.1f} MB, {', '.join(names)}")
