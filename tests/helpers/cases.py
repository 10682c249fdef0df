"""Tests that loop over cases, in place of one item for each: what fails says which case it was."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["case", "cases"]


@contextmanager
def case(*what: object) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {', '.join(str(one)[:200] for one in what)}")
        raise


Test = Callable[..., None]


def cases(names: str | tuple[str, ...], values: Iterable[Any], homes: bool = False) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, in one item. Each case patches for itself and has a `tmp_path` of its own; with
    `homes`, and where no other fixture may have filled them, also the homes of runs and caches."""
    keys = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    rows = [value if len(keys) > 1 else (value,) for value in values]

    def decorate(test: Test) -> Test:
        every = [dict(zip(keys, row, strict=True)) for row in rows]
        if inner := getattr(test, "cases", None):  # of a decorator below this one
            test, below = inner
            every = [one | other for one in every for other in below]
        parameters = inspect.signature(test).parameters
        has_homes = homes or not set(parameters) - {*every[0], "tmp_path", "monkeypatch", "capsys"}

        @functools.wraps(test)
        def try_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **fixtures: Any) -> None:
            for number, values in enumerate(every):
                folder = tmp_path / str(number)
                folder.mkdir()
                with case(*values.values()), monkeypatch.context() as patch:
                    if has_homes:
                        patch.setenv("CONTRASTIVE_LAB_HOME", str(folder / "home"))
                        patch.setenv("CONTRASTIVE_LAB_RUNS", str(folder / "runs"))
                    given = {"tmp_path": folder, "monkeypatch": patch}
                    kept = {key: value for key, value in given.items() if key in parameters}
                    test(**values, **kept, **fixtures)

        kinds = {key: one for key, one in parameters.items() if key not in every[0]}
        for key in ("tmp_path", "monkeypatch"):
            kinds.setdefault(key, inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD))
        try_all.__signature__ = inspect.Signature(list(kinds.values()))  # type: ignore[attr-defined]
        try_all.cases = test, every  # type: ignore[attr-defined]
        return try_all

    return decorate
