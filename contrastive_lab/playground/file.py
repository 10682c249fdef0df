"""The playground as one HTML file that fetches nothing and runs one script with its worker."""

import base64
import hashlib
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from contrastive_core.base import safe_files
from contrastive_core.base.errors import BadSetting
from contrastive_core.base.safe_files import printable
from contrastive_core.cli.output import out_path, print_result
from contrastive_core.data.small_images import (
    HELD_OUT,
    LEAST,
    LONGEST,
    MOST,
    SEED,
    SIDE,
    TOO_FEW,
    SmallImages,
    data_set_of,
    load_small,
)
from contrastive_core.lab.view import about_loss
from contrastive_core.spaces import file_formats
from contrastive_lab import locale
from contrastive_lab.components.playground import pack_playground
from contrastive_lab.components.shared.bundle import bundle, style_sheet
from contrastive_lab.components.shared.transport import ALIGN
from contrastive_lab.playground import LOSSES, view_of
from contrastive_lab.report.document import data_script, el, verbatim

STYLE = """
:root { color-scheme: light dark; --st-text-color: light-dark(#1E2A35, #E3E8ED);
  --st-background-color: light-dark(#FCFCFB, #14191F); --st-border-color: light-dark(#DDE2E6, #323C47);
  --stage-height: calc(100dvh - 49px); }
body { margin: 0; background: var(--st-background-color); color: var(--st-text-color);
  font: 16px/1.5 "Source Sans", "Source Sans 3", system-ui, sans-serif; }
header { display: flex; gap: 0 16px; align-items: center; min-height: 48px; padding: 0 16px;
  border-bottom: 1px solid var(--st-border-color); }
h1 { margin: 0; font-size: 16px; }
header span { flex: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
header .segment { white-space: nowrap; }
@media (max-width: 600px) { header span { display: none; } h1 { flex: 1; font-size: 14px; line-height: 1.3; } }
header button { padding: 4px 10px; font: inherit; font-size: 14px; color: inherit; background: none; border: 0; }
header button[aria-pressed="true"] { font-weight: 600; text-decoration: underline; }
"""
DEVIATIONS = 3  # of a column of vectors, from its mean to black and to white


def kernels() -> dict[str, Mapping[str, Any]]:
    """Return the kernels of the losses that the browser computes, by name."""
    return {loss: kernel for loss in LOSSES if (kernel := about_loss(loss, {})["kernel"])}


def page(kernels: Mapping[str, Mapping[str, Any]], small: SmallImages, name: str) -> str:
    """Return the complete file in both languages. `name`: the displayed name of the images."""
    view = view_of(small, kernels)
    messages = {"en": {}, "zh": locale.browser_messages("zh")}
    blobs = {language: pack_playground(view, language=language, messages=texts) for language, texts in messages.items()}
    ends = {language: ALIGN + int.from_bytes(blob[:ALIGN], "little") for language, blob in blobs.items()}
    script = bundle("playground/file.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}' 'wasm-unsafe-eval' blob:; worker-src blob:; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    title = "An encoder that learns while you drag: Contrastive Lab"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("title", title),
        verbatim("style", STYLE + style_sheet("playground")),
    )
    body = el(
        "body",
        el("header", el("h1", title), el("span", f"{name} · {len(small):,}")),
        el("div", id="playground"),
        *(data_script(blob[: ends[language]], id=f"data-{language}") for language, blob in blobs.items()),
        data_script(blobs["en"][ends["en"] :], id="images"),
        verbatim("script", script, type="module"),
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def load_rows(path: str | Path) -> SmallImages:
    """Return rows of a file of vectors as images one pixel high, with each column's mean at the center of the range. If
    some rows have labels, the others are left out. Raises BadSetting for fewer than LEAST rows, and as
    `file_formats.read` does."""
    rows = file_formats.read(path)
    is_known = np.isfinite(rows.features).all(1) & (True if rows.labels is None else rows.labels >= 0)
    most = min(MOST, MOST * SIDE**2 // rows.width)
    chosen = np.random.default_rng(SEED).permutation(np.flatnonzero(is_known))[:most]
    if len(chosen) < LEAST:
        raise BadSetting(TOO_FEW, name=printable(Path(path).name), n=len(chosen), least=LEAST)
    values = rows.features[chosen].astype(np.float64)
    scaled = (values - values.mean(0)) / np.maximum(values.std(0), 1e-12)
    images = (127.5 + 127.5 / DEVIATIONS * scaled).round().clip(0, 255).astype(np.uint8)[:, None]
    labels, classes = None, tuple[str, ...]()
    if rows.labels is not None:
        present, numbers = np.unique(rows.labels[chosen], return_inverse=True)
        labels = numbers.astype(np.int16)
        classes = tuple(printable(rows.class_name(k), LONGEST) for k in present.tolist())
    return SmallImages(images, labels, classes, len(chosen) - int(HELD_OUT * len(chosen)), len(rows))


def playground(args: Namespace) -> None:
    """Run the command: write the file."""
    out, path = out_path(args.out, ".html", ".htm"), Path(args.path)
    small = load_rows(path) if path.suffix.lower() in file_formats.ENDINGS else load_small(data_set_of(args.path))
    text = page(kernels(), small, path.name).encode()
    safe_files.write_bytes(out, text, shared=True, parents=False)
    print_result(args, {"out": str(out), "bytes": len(text)}, f"{out}: {len(text) / 1e6:.2f} MB")
