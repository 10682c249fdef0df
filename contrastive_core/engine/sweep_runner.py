"""What stands between a sweep's file and its figure: how far it is, how long it takes, training it. A cell is known
by its run's name, so whoever trains it (the queue of the app, or the command line in the foreground) finds done
cells done. Torch-free, but for timing a few steps (`rehearse`)."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from contrastive_core.engine import process, queue
from contrastive_core.messages import N_, message
from contrastive_core.records import runs
from contrastive_core.records.evaluation import read_evaluation
from contrastive_core.records.sweep_grid import Cell, Sweep, config_of
from contrastive_core.storage import json_files
from contrastive_core.storage.json_files import JsonObject

SCORED = ("linear_probe", "knn")  # metrics that a figure can show of a cell's test images
STARTING = 4.0  # seconds that a cell's process takes before its first step
MEASURED = 12  # cells at most whose steps are timed; the others take their mean


def status(sweep: Sweep) -> list[JsonObject]:
    """A row per cell: where it stands on each axis, run, seed, status, seconds, scores, and `evaluation` where it was
    scored. Cells that share a run have a row each."""
    run_by_name = {run.name: run for run in runs.list_runs()}
    rows = []
    for cell in sweep.cells():
        run = run_by_name.get(cell.run)
        row: JsonObject = {**cell.at, "run": cell.run, "seed": cell.seed, "status": "waiting"}
        if run is not None:
            row["status"] = run.status().get("status", "")
            lines = [line for line in run.metrics() if "images_per_s" not in line]
            row |= {k: v for k, v in (lines[-1] if lines else {}).items() if k not in row}
            row |= _test_scores(run)
        rows.append(row)
    return rows


def _test_scores(run: runs.Run) -> JsonObject:
    """Return the test scores of a run as `linear_probe test` and `knn test`."""
    if (evaluation := read_evaluation(run)) is None:
        return {}
    scores = {f"{m} test": s.value for m in SCORED if (s := evaluation.score("h", m)) is not None}
    return scores | {"evaluation": evaluation}


def estimate(sweep: Sweep) -> float | None:
    """Seconds that the cells still to be trained will take; None where nothing is known yet.

    A cell is known from one that is done with the same settings and another seed, or from steps that `measure` timed,
    times what done cells took over what was foretold of them; the others take the mean of those.
    """
    rows, timed, cells = {row["run"]: row for row in status(sweep)}, _timings(), sweep.trained()
    done = [cell for cell in cells if rows[cell.run]["status"] == "done"]
    took = {_sign(c): float(rows[c.run]["seconds"]) + STARTING for c in done if "seconds" in rows[c.run]}
    foretold = {sign: timed[sign] * config_of(c).epochs + STARTING for c in cells if (sign := _sign(c)) in timed}
    both = took.keys() & foretold.keys()
    ratio = sum(took[s] for s in both) / sum(foretold[s] for s in both) if both else 1.0
    guessed = {s: ratio * t for s, t in foretold.items()} | took
    durations = [guessed.get(_sign(cell)) for cell in cells if rows[cell.run]["status"] != "done"]
    known_ones = [t for t in durations if t is not None] or list(took.values())
    if not durations:
        return 0.0
    if not known_ones:
        return None
    mean = sum(known_ones) / len(known_ones)
    return sum(mean if t is None else t for t in durations)


def measure(sweep: Sweep, report: Callable[[str], None] = print) -> None:
    """Time a few steps of cells without an estimate, spread over the sweep."""
    from contrastive_core.training.loop import seconds_per_epoch

    finished = {r["run"] for r in status(sweep) if r["status"] == "done"}
    cells = {_sign(c): c for c in sweep.trained() if c.run not in finished}
    untimed = [c for sign, c in cells.items() if sign not in _timings()]
    stride = max(1, -(-len(untimed) // MEASURED))
    for number, cell in enumerate(untimed[::stride], 1):
        count = len(untimed[::stride])
        report(message("timing a few steps of cell {number} of {untimed}", number=number, untimed=count))
        json_files.write_json(timings_path(), {**_timings(), _sign(cell): seconds_per_epoch(config_of(cell))})


def _sign(cell: Cell) -> str:
    """Return the settings that determine a cell's time: all but seed and epochs."""
    return json.dumps({**cell.settings, "epochs": None}, sort_keys=True, default=str)


def timings_path() -> Path:
    """Where the times of cells are kept."""
    return process.folder() / "timings" / "epochs.json"


def _timings() -> dict[str, float]:
    try:
        return {k: float(v) for k, v in json_files.read_object(timings_path()).items()}
    except (OSError, ValueError, TypeError):
        return {}


def enqueue(sweep: Sweep, most: int | None = None) -> list[str]:
    """Let the cells that are not done wait in the queue, one at a time; returns their runs' names. Stopped and failed
    cells are resumed. Raises Locked."""
    rows = {row["run"]: row["status"] for row in status(sweep)}
    trainings = [(c.run, c.arguments()) for c in sweep.trained() if rows[c.run] not in ("done", "running")]
    return queue.enqueue_group(sweep.name, trainings[:most], sweep.budget_hours)


def unscored(sweep: Sweep) -> list[str]:
    """Runs of done cells whose test images have not been scored."""
    done = {row["run"]: row for row in status(sweep) if row["status"] == "done"}
    return [name for name, row in done.items() if any(f"{metric} test" not in row for metric in SCORED)]


def run_sweep(sweep: Sweep, report: Callable[[str], None] = print, most: int | None = None) -> list[JsonObject]:
    """Train what is not done yet, one cell at a time, `most` cells at most. Returns the `status`. A cell that fails is
    reported and left; the next one starts. A stop stops the sweep too."""
    trained, started, cells = 0, time.monotonic(), sweep.trained()
    for number, cell in enumerate(cells, 1):
        state = _state(sweep, cell)
        if state in ("done", "running"):  # the app's queue may be at it
            continue
        hours = sweep.budget_hours
        if hours and time.monotonic() - started > 3600 * hours:
            text = N_("the budget of {budget_hours} hours is used up; run it again to continue")
            report(message(text, budget_hours=f"{hours:g}"))
            break
        if most is not None and trained >= most:
            break
        trained += 1
        seconds = estimate(sweep)
        about = "" if seconds is None else message(", about {seconds} min left", seconds=f"{seconds / 60:.0f}")
        report(f"[{number}/{len(cells)}] {cell.run}{about}")
        if code := _train(cell.argv() if state == "waiting" else ["train", "--run", cell.run, "--resume"]):
            report(
                message("{run} ended with exit status {code}; continuing with the next cell", run=cell.run, code=code)
            )
        elif _state(sweep, cell) == "stopped":
            report(N_("stopped; run the sweep again to continue"))
            break
    return status(sweep)


def _state(sweep: Sweep, cell: Cell) -> str:
    return next(str(row["status"]) for row in status(sweep) if row["run"] == cell.run)


def _train(argv: list[str]) -> int:
    return subprocess.run(process.command_line(argv)).returncode
