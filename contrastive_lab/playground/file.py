"""The playground as one HTML file that fetches nothing and runs one script with its worker."""

import base64
import hashlib
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from contrastive_core.base import storage
from contrastive_core.cli.command_io import out_path, print_result
from contrastive_core.lab.view import about_loss
from contrastive_core.spaces.small_samples import SmallImages, load_samples
from contrastive_lab import locale
from contrastive_lab.components.shared.mount import ALIGN, bundle, style_sheet
from contrastive_lab.playground import LOSSES, pack_playground
from contrastive_lab.texts import data_script, el, verbatim

STYLE = Path(__file__).with_name("file.css")


def kernels() -> dict[str, Mapping[str, object]]:
    """Return the kernels of the losses that the browser computes, by name."""
    return {loss: kernel for loss in LOSSES if (kernel := about_loss(loss, {})["kernel"])}


def page(kernels: Mapping[str, Mapping[str, object]], small: SmallImages, name: str) -> str:
    """Return the complete file in both languages. `name`: the displayed name of the images."""
    messages = {"en": {}, "zh": locale.browser_messages("zh")}
    blobs = {name: pack_playground(small, kernels, language=name, messages=texts) for name, texts in messages.items()}
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
        verbatim("style", STYLE.read_text("utf-8") + style_sheet("playground")),
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


def playground(args: Namespace) -> None:
    """Run the command: write the file."""
    out = out_path(args.out, ".html", ".htm")
    text = page(kernels(), load_samples(args.path), Path(args.path).name).encode()
    storage.write_bytes(out, text, shared=True, parents=False)
    print_result(args, {"out": str(out), "bytes": len(text)}, f"{out}: {len(text) / 1e6:.2f} MB")
