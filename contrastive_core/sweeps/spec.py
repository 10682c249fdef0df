"""Sweep files: a little TOML says which settings vary; each cell is an ordinary run. Torch-free.

    name = "temperature"               # "": runs are called by their labels alone
    seeds = [0, 1, 2]                  # default: [0]
    form = "line"                      # how it is drawn: "table", "line" or "matrix"
    budget_hours = 6                   # no new cell is started later than this

    [base]                             # options and settings that every cell shares
    method = "simclr"
    dataset = "shapes"
    epochs = 8

    [[axes]]
    key = "loss.temperature"           # one setting ...
    values = [0.05, 0.1, 0.5]

    [[axes]]
    name = "head"                      # ... or named groups of settings
    values = [
      { label = "none", set = { "method.head" = "none" } },
      { label = "wide", set = { "method.head" = "nonlinear", "method.hidden" = 512 },
        at = { width = 512 } },        # where it stands on what is drawn, if not its label
    ]                                  # "none" might say ignores = ["method.hidden"]: settings of
                                       # other axes without effect; such cells are trained once

    [draw]                             # optional: which of these names is what
    x = "loss.temperature"             # line: x, series; matrix: rows, columns
    series = "head"
    measures = ["accuracy", "uniformity"]

Cells are the product of the axes and the seeds. A cell's run is named after sweep, cell and seed, so a sweep that was
cut off goes on where it was: done runs are kept, stopped ones are resumed (sweep_runner.py).
"""

import contextlib
import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from contrastive_core.data import datasets
from contrastive_core.errors import BadSetting, NotRegular, UnknownName
from contrastive_core.messages import N_
from contrastive_core.records.sweep_grid import Axis, Draw, Sweep, as_text, config_of
from contrastive_core.storage.regular_files import open_regular, read_regular

FORMS = ("table", "line", "matrix")
KEYS = {"name", "title", "seeds", "form", "budget_hours", "base", "axes", "draw"}
MEASURES = ("accuracy", "uniformity", "alignment", "rankme", "memory_mb", "seconds", "loss")
MOST = 1000  # cells
LARGEST = 1 << 18  # bytes of a file
HEAD = 1 << 12  # bytes in which a title is looked for
PARTS = 8  # of a dotted key
_PART = r"""(?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[\w-]++)"""
DEEP = re.compile(rf"(?<![\w-])(?:{_PART}[ \t]*+\.[ \t]*+){{{PARTS}}}")


def load(path: str | Path) -> Sweep:
    """Read and check a sweep file. Raises BadSetting with the sentence to show."""
    path = Path(path)
    try:
        return read(read_regular(path, LARGEST).decode(), path.name)
    except (OSError, NotRegular, UnicodeDecodeError) as error:
        raise BadSetting("cannot read {path}: {error}", path=path, error=error) from None


def title_of(path: str | Path) -> str:
    """A sweep file's title, or its name where its first lines give none; nothing else is read."""
    path = Path(path)
    with contextlib.suppress(OSError, ValueError), open_regular(path) as file:
        lines = file.read(HEAD).decode(errors="ignore").splitlines()
        line = next(line for line in (*lines, N_("title = ''")) if re.match(r"title\s*=", line))
        title = tomllib.loads(line)["title"]
        if isinstance(title, str) and title.strip():
            return title
    return path.stem


def read(text: str, file: str) -> Sweep:
    """A sweep from the text of its file, called `file`. Raises BadSetting."""
    if len(text) > LARGEST:
        values = {"file": file, "text": f"{len(text):,}", "largest": f"{LARGEST:,}"}
        raise BadSetting("{file} has {text} characters; a sweep has at most {largest}", **values)
    if DEEP.search(text):  # the parser takes memory by the square of a key's parts
        raise BadSetting("{file}: a key has at most {parts} parts", file=file, parts=PARTS)
    try:
        return _read(tomllib.loads(text), file)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadSetting("cannot read {file}: {error}", file=file, error=error) from None
    except BadSetting:
        raise
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise BadSetting(f"{file}: {error}") from None


def _read(raw: dict[str, Any], file: str) -> Sweep:
    if unknown := sorted(set(raw) - KEYS):
        values = {"file": file, "unknown": f"{unknown[0]!r}", "keys": ", ".join(sorted(KEYS))}
        raise BadSetting("{file}: unknown key {unknown}; known: {keys}", **values)
    name = str(raw.get("name", Path(file).stem))
    axes = tuple(_axis(file, axis) for axis in raw.get("axes", []))
    hours = raw.get("budget_hours")
    sweep = Sweep(
        name,
        str(raw.get("title", name)),
        dict(raw.get("base", {})),
        axes,
        tuple(int(seed) for seed in raw.get("seeds", [0])),
        raw.get("form", "table"),
        None if hours is None else float(hours),
        _draw(file, raw.get("draw", {}), axes),
    )
    if sweep.form not in FORMS:
        raise BadSetting("{file}: form must be one of {forms}", file=file, forms=", ".join(FORMS))
    _check(file, sweep)
    return sweep


def changed(sweep: Sweep, settings: Sequence[str]) -> Sweep:
    """The sweep with some `key=value` for every cell: another sweep, with runs of its own.
    Raises: BadSetting."""
    if not settings:
        return sweep
    pairs = [s.partition("=")[::2] for s in settings]
    new = {k.strip(): v.strip() for k, v in pairs}
    axes = []
    for axis in sweep.axes:  # also where an axis sets it itself
        values = [(b, s | {k: new[k] for k in s if k in new}, at) for b, s, at in axis.values]
        axes.append(replace(axis, values=tuple(values)))
    ending = "-".join(f"{k.rpartition('.')[2]}{v}" for k, v in new.items())
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", f"{sweep.name}-{ending}".strip("-"))
    variant = replace(sweep, name=name, base={**sweep.base, **new}, axes=tuple(axes))
    _check(sweep.name, variant)
    return variant


def _draw(file: str, raw: dict[str, Any], axes: Sequence[Axis]) -> Draw:
    """Return the axes of the figure; by default the last axis is x, or the matrix's columns."""
    if unknown := sorted(set(raw) - {"x", "series", "rows", "columns", "measures"}):
        raise BadSetting("{file}: [draw] has no key {unknown}", file=file, unknown=f"{unknown[0]!r}")
    columns = {a.name for a in axes} | {k for a in axes for v in a.values for k in v[2]}
    roles: dict[str, str] = {k: str(v) for k, v in raw.items() if k != "measures"}
    for name in roles.values():
        if name not in columns:
            there = ", ".join(sorted(columns))
            raise BadSetting(
                "{file}: [draw] names {name}, which is not one of {columns}", file=file, name=f"{name!r}", columns=there
            )
    measures = tuple(raw.get("measures", ["accuracy"]))
    if not measures or not set(measures) <= set(MEASURES):
        raise BadSetting("{file}: measures must be among {measures}", file=file, measures=", ".join(MEASURES))
    names = [a.name for a in axes] or [""]
    usual = {"x": names[-1], "series": names[0] if len(names) > 1 else "", "rows": names[0], "columns": names[-1]}
    return Draw(**usual | roles, measures=measures)


def _axis(file: str, raw: dict[str, Any]) -> Axis:
    if unknown := sorted(set(raw) - {"name", "key", "values"}):
        raise BadSetting("{file}: an axis has no key {unknown}", file=file, unknown=f"{unknown[0]!r}")
    values, key = raw.get("values"), raw.get("key")
    if not isinstance(values, list) or not values:
        raise BadSetting("{file}: every axis needs a list of values", file=file)
    name = str(raw.get("name", key))
    if key is not None:
        return Axis(name, tuple((as_text(v), {str(key): v}, {}) for v in values))
    if not all(isinstance(v, dict) and set(v) - {"at", "ignores"} == {"label", "set"} for v in values):
        raise BadSetting("{file}: axis {name} needs a key, or values of label and set", file=file, name=f"{name!r}")
    points = ((str(v["label"]), dict(v["set"]), dict(v.get("at", {}))) for v in values)
    ignores = {str(v["label"]): tuple(map(str, v["ignores"])) for v in values if "ignores" in v}
    return Axis(name, tuple(points), ignores)


def _check(file: str, sweep: Sweep) -> None:
    """Every cell's settings are understood, and no two cells share a run."""
    count = math.prod([len(sweep.seeds), *(len(axis.values) for axis in sweep.axes)])
    if not 1 <= count <= MOST:
        raise BadSetting("{file}: {count} cells; a sweep has 1 to {most}", file=file, count=f"{count:,}", most=MOST)
    cells = sweep.cells()
    for cell in cells:
        try:
            datasets.check_name(config_of(cell).dataset)
        except (TypeError, BadSetting, UnknownName) as error:
            raise BadSetting(f"{file}: {error}") from None
    trained = {cell.run: cell for cell in cells}
    if any(trained[c.run].arguments() != c.arguments() for c in cells):
        raise BadSetting("{file}: two cells would have the same run name; use shorter labels", file=file)
    if len({(str(sorted(c.at.items())), c.seed) for c in cells}) < len(cells):
        raise BadSetting("{file}: two cells have the same values; remove one", file=file)
