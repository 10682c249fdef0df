"""A real Jupyter server on 127.0.0.1, and a notebook whose cells are run in a browser."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import browser as real

__all__ = ["jupyter", "open_notebook", "outputs", "run_all", "write_notebook"]

SETTINGS = (
    "--no-browser",
    "--ServerApp.ip=127.0.0.1",
    "--IdentityProvider.token=",
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.extension_manager=readonly",
    "--LabApp.news_url=None",
    "--allow-root",
)


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """A notebook with these cells, none of them run."""
    made = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{number}",
            "metadata": {},
            "outputs": [],
            "source": text,
        }
        for number, text in enumerate(cells)
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    book = {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(book))


@contextmanager
def jupyter(home: Path, folder: Path) -> Iterator[str]:
    """JupyterLab on a folder; gives the address. Its settings lie in `home`."""
    port, log = real.free_port(), home / "jupyter.log"
    homes = {
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": f"{home}/config",
        "IPYTHONDIR": f"{home}/ipython",
        "JUPYTER_DATA_DIR": f"{home}/data",
        "JUPYTER_RUNTIME_DIR": f"{home}/runtime",
        "CONTRASTIVE_LAB_HOME": f"{home}/home",
        "CONTRASTIVE_LAB_RUNS": f"{home}/runs",
        "PYTHONPATH": str(real.ROOT),
        "JUPYTER_PLATFORM_DIRS": "1",
    }
    command = [sys.executable, "-m", "jupyterlab", *SETTINGS, f"--ServerApp.port={port}"]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, f"--ServerApp.root_dir={folder}"],
            cwd=folder,
            env={**os.environ, **homes},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        real.wait_for(f"http://127.0.0.1:{port}/api", server, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()  # its kernels with it
        server.wait(20)


def open_notebook(page: Any, address: str, name: str) -> None:
    """Open a notebook on a page of its own, its kernel ready."""
    page.goto(f"{address}/lab/tree/{name}")
    page.wait_for_function("() => window.jupyterapp?.shell.currentWidget?.context?.isReady")
    page.wait_for_function("() => jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'")


def run_all(page: Any) -> None:
    """Run every cell, one after the other."""
    page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")


def outputs(page: Any) -> list[str]:
    """What each cell has printed, and the errors it raised."""
    return page.evaluate(  # type: ignore[no-any-return]
        """() => jupyterapp.shell.currentWidget.content.widgets.map((cell) =>
          (cell.model.outputs?.toJSON() ?? []).map((o) => o.text ?? o.evalue ?? '').join(''))"""
    )
