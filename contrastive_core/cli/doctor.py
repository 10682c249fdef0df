"""`doctor`: what there is on this computer, for a report of a fault."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from argparse import Namespace
from importlib import metadata
from pathlib import Path

import torch

from contrastive_core import device
from contrastive_core.cli.output import print_result
from contrastive_core.paths import ROOT, SHIPPED, data_home, runs_home
from contrastive_core.storage.json_files import JsonObject

PACKAGES = (
    "contrastive-lab torch torchvision numpy scipy scikit-learn umap-learn pyarrow pillow streamlit pywebview"
).split()
APP_CHECK = "contrastive_lab.desktop.check"  # run, not imported: the library knows no app
SECONDS = 180  # more than the app gives its server to begin


def doctor(args: Namespace) -> int:
    """Print it all; the exit status is 1 where a folder or the app does not work."""
    shipped = "" if SHIPPED.is_dir() else f"{SHIPPED} is missing"
    record: JsonObject = {
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "versions": {package: _version(package) for package in PACKAGES},
        "device": _device(),
        "folders": {
            "runs": _folder(runs_home()),
            "caches": _folder(data_home()),
            "shipped": {"path": str(SHIPPED), "problem": shipped},
        },
        "app": _app(),
    }
    print_result(args, record, _text(record))
    return int(any(about["problem"] for about in (*record["folders"].values(), record["app"])))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _device() -> JsonObject:
    chosen = device.choose()
    return {
        "chosen": device.describe(chosen),
        "bf16": device.wants_bf16(chosen),
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "gpus": torch.cuda.device_count(),
        "build": f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU",
    }


def _folder(path: Path) -> JsonObject:
    """Where it lies, whether it can be written, and how much room its disk has."""
    there = next(p for p in (path, *path.parents) if p.exists())
    problem = "" if there.is_dir() and os.access(there, os.W_OK) else f"{there} cannot be written"
    return {"path": str(path), "free_gb": round(shutil.disk_usage(there).free / 1e9, 1), "problem": problem}


def _app() -> JsonObject:
    """What the app says of itself, from a process of its own."""
    if importlib.util.find_spec("contrastive_lab") is None:
        return {"window": "", "problem": "the app is not installed"}
    command = [sys.executable, "-m", APP_CHECK]
    try:
        completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
        return dict(json.loads(completed.stdout.splitlines()[-1]))
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return {"window": "", "problem": f"its check ended with {type(error).__name__}: {error}"}


def _text(record: JsonObject) -> str:
    device, app = record["device"], record["app"]
    extras = f"{', bf16' if device['bf16'] else ''}; PyTorch for {device['build']}"
    rows = {
        "system": record["system"],
        "device": f"{device['chosen']}, {device['cores']} cores, {device['gpus']} GPUs{extras}",
        "versions": ", ".join(f"{name} {version or '–'}" for name, version in record["versions"].items()),
    }
    for name, about in record["folders"].items():
        room = f", {about['free_gb']} GB free" if "free_gb" in about else ""
        rows[name] = about["problem"] or f"{about['path']}{room}"
    rows |= {"window": app["window"], "app": app["problem"] or "its server and its parts work"}
    return "\n".join(f"{name:<10}{text}" for name, text in rows.items())
