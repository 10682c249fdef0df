"""A wheel in an empty environment, outside the checkout: the command opens each kind of thing there
in a real browser. Nothing is fetched: the environment sees the dependencies that are here already.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from patience import PATIENCE, SLOW
from PIL import Image

from benchmarks import browser as real

CLASSES = ("Äpfel", "Birnen")
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S*")


class Installed:
    """The installed command in a folder of its own, with a user's folders of its own."""

    def __init__(self, place: Path, program: Path) -> None:
        self.place, self.program = place, program
        self.started: list[subprocess.Popen[str]] = []
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CONTRASTIVE_LAB")}
        kept.pop("PYTHONPATH", None)
        self.data = place / "user data"
        self.environment = {**kept, "XDG_DATA_HOME": str(self.data), "HOME": str(place)}

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.program), *arguments],
            cwd=self.place,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=PATIENCE,
        )

    def address(self, *arguments: str) -> str:
        """Where a start, which `end` ends, says a thing is shown."""
        process = subprocess.Popen(
            [str(self.program), *arguments, "--no-window"],
            cwd=self.place,
            env=self.environment,
            text=True,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if found := ADDRESS.search(line):
                return found[0]
        raise AssertionError(process.wait())

    def end(self) -> None:
        """End what was started as Ctrl-C does, and with it its servers."""
        for process in self.started:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        self.started.clear()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this checkout in an empty environment, without the network."""
    place = tmp_path_factory.mktemp("in ställed")
    python = place / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    own = [sys.executable, "-m"]
    for command in (
        [*own, "hatchling", "build", "-t", "wheel", "-d", str(place)],
        [*own, "venv", "--without-pip", str(place / "venv")],
    ):
        subprocess.run(command, cwd=real.ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    site = next((place / "venv").rglob("site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    install(wheel, python, site)
    made = Installed(place, python.with_name("contrastive-lab"))
    things(place)
    return made


def install(wheel: Path, python: Path, site: Path) -> None:
    """Unpack a wheel and write its command, as installers do: none need be here."""
    shutil.unpack_archive(wheel, site, "zip")
    entry = (next(site.glob("*.dist-info")) / "entry_points.txt").read_text()
    module, function = re.search(r"contrastive-lab = (\S+):(\S+)", entry).groups()  # type: ignore[union-attr]
    program = python.with_name("contrastive-lab")
    start = f'#!/bin/sh\n"exec" "{python}" "$0" "$@"\n'  # a line for sh, and text for Python
    program.write_text(f"{start}import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    program.chmod(0o755)


def things(place: Path) -> None:
    """One of each kind, under names with spaces and umlauts."""
    rng, labels = np.random.default_rng(0), np.arange(60) % 3
    rows = (np.eye(3, 8)[labels] + 0.1 * rng.normal(size=(60, 8))).astype(np.float32)
    np.savez(place / "größe 1.npz", features=rows, labels=labels)
    for label, name in enumerate(CLASSES):
        (place / "my images" / name).mkdir(parents=True)
        for i in range(10):
            pixels = rng.integers(0, 256, (16, 16, 3), np.uint8) // (label + 1)
            Image.fromarray(pixels).save(place / "my images" / name / f"Bild {i}.png")
    weights = real.ROOT / "checkpoints" / "shipped" / "sup_con-digits" / "weights.safetensors"
    shutil.copy(weights, place / "elsewhere.safetensors")
    shutil.copy(real.ROOT / "sweeps" / "heads.toml", place / "Köpfe.toml")


@pytest.fixture(autouse=True)
def alone(installed: Installed) -> Iterator[None]:
    """What a page waited for outlives it, and ends with its test."""
    yield
    installed.end()
    home = installed.data / "contrastive-lab"
    real.end_tasks({"CONTRASTIVE_LAB_RUNS": str(home / "runs"), "CONTRASTIVE_LAB_HOME": str(home / "cache")})


def answers(address: str) -> bool:
    port = urlsplit(address).port or 0
    with real.socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def test_nothing_of_it_lies_at_the_top_of_site_packages(installed: Installed) -> None:
    site = next((installed.place / "venv").rglob("site-packages"))
    own = {p.name for p in site.iterdir() if not p.name.endswith((".dist-info", ".pth"))}
    assert own - {"__pycache__", "_distutils_hack"} == {"contrastive_core", "contrastive_lab"}


def test_the_app_says_where_its_folders_are(installed: Installed, page: Any) -> None:
    home = installed.data / "contrastive-lab"
    page.goto(installed.address("simclr-digits").replace("/explore", "/runs"))
    page.locator("[class*=st-key-toolbar-more] button").first.click(timeout=SLOW)
    page.get_by_text(str(home / "runs")).wait_for(timeout=SLOW)
    assert (home / "cache" / "app").is_dir()
    assert not (installed.place / "checkpoints").exists()


def test_doctor_finds_everything_in_order(installed: Installed) -> None:
    done = installed.call("doctor", "--json")
    report = json.loads(done.stdout)
    assert report["app"]["problem"] == ""
    assert report["folders"]["runs"]["path"] == str(installed.data / "contrastive-lab" / "runs")
    assert {f["problem"] for f in report["folders"].values()} == {""}
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "signs"),
    [
        ("größe 1.npz", ["größe 1.npz", "60 points", "Uniformity"]),
        ("my images", ["20 images · 2 classes", "Birnen 8 + 2, Äpfel 8 + 2"]),
        ("elsewhere.safetensors", ["Contrastive Lab, small", "Tensors matched"]),
        ("sup_con-digits", ["sup_con-digits", "360 points"]),
        ("Köpfe.toml", ["Still to train"]),
    ],
)
def test_each_kind_of_thing_opens_on_its_page(installed: Installed, page: Any, name: str, signs: list[str]) -> None:
    page.goto(installed.address(name))
    for sign in signs:
        page.get_by_text(sign).locator("visible=true").first.wait_for(timeout=SLOW)


def test_a_start_has_its_own_server_and_ends_it(installed: Installed) -> None:
    first, second = installed.address(), installed.address()
    assert urlsplit(first).port != urlsplit(second).port
    installed.end()
    assert not answers(first)
    assert not answers(second)
