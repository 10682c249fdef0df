"""The commands `list`, `verify` and `doctor`: runs, their integrity, this computer, and with `doctor loop` the
comparison of a saved batch of a training loop with the declared loss."""

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load

from contrastive_core import losses, methods, metrics, runs
from contrastive_core.base import device
from contrastive_core.base.messages import printable
from contrastive_core.base.storage import ROOT, SHIPPED, data_home, read_regular, runs_home
from contrastive_core.cli.command_io import counted, print_result, progress_of
from contrastive_core.compare.evaluate import ScoreCache, deviations
from contrastive_core.data import datasets
from contrastive_core.engine.run_folders import damage
from contrastive_core.recording.doctor import diagnose
from contrastive_core.recording.loop_checks import CheckCopy
from contrastive_core.recording.steps import Omissions, copy_step
from contrastive_core.runs.changes import in_words

PACKAGES = (
    "contrastive-lab torch torchvision numpy scipy scikit-learn umap-learn pyarrow pillow streamlit pywebview"
).split()
APP_CHECK = "contrastive_lab.desktop.serving"  # run, not imported: the library does not depend on the app
SECONDS = 180  # longer than the app waits for its server to start


def list_all(args: Namespace) -> None:
    """List the runs and the names that other commands accept."""
    names = {"methods": methods.names(), "losses": losses.names(), "metrics": metrics.names()}
    names |= {"datasets": datasets.dataset_names()}
    lines, rows = [f"{what}: {', '.join(entries)}" for what, entries in names.items()], list[dict[str, object]]()
    listed = runs.list_runs()
    width = max([len(run.name) for run in listed], default=0)
    for run in listed:
        status, config = run.status(), {**run.manifest, **run.config}
        row = {"run": run.name, "status": status["status"], "reason": status.get("reason", "")}
        row |= {"method": config.get("method", ""), "dataset": config.get("dataset", "")}
        rows.append(row | {"shipped": run.shipped})
        kind = f"{row['method']} on {row['dataset']}" if row["method"] else "recording"
        ending = "  (shipped)" * run.shipped + (f"  {row['reason']}" if row["reason"] else "")
        lines.append(f"{run.name:<{width}}  {row['status']:<8} {kind}{ending}")
    lines += [] if rows else ["no runs yet: contrastive-lab train --method simclr --dataset digits"]
    print_result(args, {"runs": rows, **names}, "\n".join(lines))


def verify(args: Namespace) -> int:
    """Check all files of the runs and recompute the scores of shipped runs; return 1 if a file is
    damaged or a score differs."""
    cache: ScoreCache = {}
    chosen = [runs.load(name) for name in args.runs] or runs.list_runs()
    problems = {run.name: damage(run) for run in chosen}
    problems |= {name: [why] for name, why in runs.damaged().items() if not args.runs}
    shipped = [r for r in chosen if r.shipped and not args.files and not problems[r.name]]
    with progress_of(args) as on_progress:
        for number, run in enumerate(shipped):
            on_progress(f"computing the figures of {run.name}", number / len(shipped))
            problems[run.name] = deviations(run, args.device, cache)
    changed = {run.name: f"; changed while it trained: {text}" for run in chosen if (text := in_words(run.changes()))}
    lines = [f"{name}: {'; '.join(bad) or 'whole'}{changed.get(name, '')}" for name, bad in problems.items()]
    print_result(args, {"runs": problems}, "\n".join(lines) or "no runs yet")
    return int(any(problems.values()))


# --- this computer -----------------------------------------------------------------------------------


def doctor(args: Namespace) -> int:
    """Print facts about the installation; return 1 if a folder or the app does not work."""
    if args.what:
        return check_loop(args)
    chosen = device.choose()
    system = f"{platform.platform()}, Python {platform.python_version()}"
    versions = {package: runs.package_version(package) for package in PACKAGES}
    name, bf16, cores = device.describe(chosen), device.wants_bf16(chosen), os.cpu_count() or 1
    gpus, threads = torch.cuda.device_count(), torch.get_num_threads()
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    facts = {"chosen": name, "bf16": bf16, "threads": threads, "cores": cores, "gpus": gpus, "build": build}
    extras = f"{', bf16' if bf16 else ''}; PyTorch for {build}"
    rows = {
        "system": system,
        "device": f"{name}, {counted(cores, 'core')}, {counted(gpus, 'GPU')}{extras}",
        "versions": ", ".join(f"{package} {version or '–'}" for package, version in versions.items()),
    }
    folders: dict[str, dict[str, object]] = {}
    for what, path in {"runs": runs_home(), "caches": data_home()}.items():
        there = next(p for p in (path, *path.parents) if p.exists())
        free = round(shutil.disk_usage(there).free / 1e9, 1)
        problem = "" if there.is_dir() and os.access(there, os.W_OK) else f"{there} cannot be written"
        folders[what] = {"path": str(path), "free_gb": free, "problem": problem}
        rows[what] = problem or f"{path}, {free} GB free"
    problem = "" if SHIPPED.is_dir() else f"{SHIPPED} is missing"
    folders["shipped"] = {"path": str(SHIPPED), "problem": problem}
    rows["shipped"] = problem or str(SHIPPED)
    app: dict[str, object] = {"window": "", "problem": "the app is not installed"}
    if importlib.util.find_spec("contrastive_lab"):
        command = [sys.executable, "-m", APP_CHECK]
        try:
            completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
            app = dict(json.loads(completed.stdout.splitlines()[-1]))
        except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
            app["problem"] = f"its check ended with {type(error).__name__}: {error}"
    rows |= {"window": str(app["window"]), "app": str(app["problem"] or "its server and its parts work")}
    record = {"system": system, "versions": versions, "device": facts, "folders": folders, "app": app}
    print_result(args, record, "\n".join(f"{what:<10}{text}" for what, text in rows.items()))
    return int(any(about["problem"] for about in (*folders.values(), app)))


# --- a training loop ---


LARGEST = 1 << 30  # bytes
BESIDE = ("labels", "ids", "temperature", "bias")


def check_loop(args: Namespace) -> int:
    """Print the setting or fault that explains the file's loss and gradient; return 1 for faults. Raises ValueError."""
    if not args.file or not args.loss:
        raise ValueError("doctor loop needs a file and --loss: doctor loop step.safetensors --loss nt_xent")
    knobs = dict(entry.partition("=")[::2] for entry in args.set)
    loss, name = losses.create(args.loss, **knobs), printable(args.file)
    try:
        tensors = load(bytes(read_regular(Path(args.file), LARGEST)))
    except SafetensorError as error:
        raise ValueError(f"{name} is no safetensors file: {error}") from None
    if "z" not in tensors:
        raise ValueError(f"{name} has no tensor z; it has {', '.join(map(printable, tensors)) or 'none'}")
    keys = ("z", "other") if "other" in tensors else ("z",)
    grads = [tensors.get(key) for key in ("grad", "grad_other")[: len(keys)]]
    for key, grad in zip(keys, grads, strict=True):
        if grad is not None and grad.shape != tensors[key].shape:
            shapes = f"{tuple(grad.shape)}, that of {key} {tuple(tensors[key].shape)}"
            raise ValueError(f"the gradient in {name} has another shape than its rows: {shapes}")
    if (value := tensors.get("loss")) is not None and value.ndim:
        raise ValueError(f"the loss in {name} must be one number; got shape {tuple(value.shape)}")
    values = {key: tensors.get(key) for key in BESIDE}
    copy = copy_step(
        1,
        [tensors[key] for key in keys],
        0.0,
        Omissions(""),
        queue=tensors.get("queue"),
        are_towers=len(keys) > 1,
        caller_loss=value,
        **values,
    )
    check = CheckCopy(copy, tuple(g is not None for g in grads), grads)
    found = diagnose(check.saved_batch(args.positives, args.accumulate), loss)
    if found.problem and not found.faults and found.expected is None:
        raise ValueError(found.problem)
    rows = sorted({row for fault in found.faults for row in fault.rows})
    record = {
        "file": args.file,
        "faults": [fault._asdict() for fault in found.faults],
        **{key: getattr(found, key) for key in ("is_explained", "problem", "value", "expected", "factor", "cosine")},
    }
    lines = [found.text, found.numbers, f"Rows: {', '.join(rows[:20])}" if rows else ""]
    print_result(args, record, "\n".join(filter(None, lines)))
    return int(not found.is_healthy)
