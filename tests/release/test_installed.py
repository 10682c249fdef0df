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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.program), *arguments],
            cwd=self.place,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

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
        process = self.begin(*arguments, "--no-window")
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
    pq.write_table(
        pa.table(
            {
                "text": [f"row {i}" for i in range(60)],
                "projection_x": rows[:, 0],
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 8),
            }
        ),
        place / "atlas.parquet",
    )
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


def test_vectors_open_on_their_map_scores_and_lists(installed: Installed, page: Any) -> None:
    page.goto(installed.address("größe 1.npz"))
    page.get_by_role("heading", name="größe 1.npz").wait_for(timeout=SLOW)
    page.get_by_text("60 points").first.wait_for(timeout=SLOW)
    page.locator(".map canvas").first.wait_for(timeout=SLOW)
    page.get_by_text("Uniformity").locator("visible=true").first.wait_for(timeout=SLOW)
    page.get_by_role("link", name=re.compile("Find wrong labels|Find duplicates")).click()
    page.get_by_role("heading", name="Samples").wait_for(timeout=SLOW)
    page.wait_for_url(re.compile(r"/samples\?.*on=vectors"), timeout=SLOW)
    page.get_by_role("button", name=re.compile("Likely mislabeled|Near-duplicates|Outliers")).first.wait_for(
        timeout=SLOW
    )


def test_a_table_of_vectors_opens_on_its_points(installed: Installed, page: Any) -> None:
    name = "atlas.parquet"
    page.goto(f"{installed.address(name)}&map=pca")  # no process that lays out a UMAP is waited for
    page.get_by_role("heading", name=name).wait_for(timeout=SLOW)
    page.get_by_text("60 rows × 8").wait_for(timeout=SLOW)
    page.get_by_text("60 points").first.wait_for(timeout=SLOW)


def test_a_folder_opens_on_its_images_and_classes(installed: Installed, page: Any) -> None:
    from playwright.sync_api import expect  # where it is missing, tests are skipped

    address = installed.address("my images")
    page.goto(address)
    page.get_by_text(re.compile("20 images · 2 classes · .* · 16 train, 4 test")).wait_for(timeout=SLOW)
    page.get_by_text(re.compile(r"Birnen \d \+ \d, Äpfel \d \+ \d")).wait_for(timeout=SLOW)
    field = page.get_by_role("textbox", name="Folder (one folder per class")
    expect(field).to_have_value(str(installed.place / "my images"), timeout=SLOW)
    page.get_by_role("button", name="Start", exact=True).wait_for(timeout=SLOW)
    images = page.get_by_role("group", name="images of the folder").get_by_role("button")
    images.first.wait_for(timeout=SLOW)
    assert images.count() == 16  # of the training part
    images.first.click()
    page.get_by_text(re.compile(r"Birnen/Bild \d+\.png")).wait_for(timeout=SLOW)


def test_a_checkpoint_says_which_encoder_it_seems_to_be(installed: Installed, page: Any) -> None:
    page.goto(installed.address("elsewhere.safetensors"))
    page.get_by_role("heading", name="Contrastive Lab, small").wait_for(timeout=SLOW)
    page.get_by_text("Tensors matched").wait_for(timeout=SLOW)
    assert page.get_by_label("or its path on this computer").input_value().endswith("elsewhere.safetensors")


def test_a_run_and_a_sweep_open_on_their_pages(installed: Installed, page: Any) -> None:
    page.goto(installed.address("sup_con-digits"))
    page.get_by_role("heading", name="sup_con-digits").wait_for(timeout=SLOW)
    page.get_by_text("360 points").wait_for(timeout=SLOW)
    page.goto(installed.address("Köpfe.toml"))
    page.get_by_text("Still to train").wait_for(timeout=SLOW)
    assert "sweep=K%C3%B6pfe" in page.url


def test_a_start_has_its_own_server_and_ends_it(installed: Installed) -> None:
    first, second = installed.address(), installed.address()
    assert urlsplit(first).port != urlsplit(second).port
    installed.end()
    assert not answers(first)
    assert not answers(second)


def test_closing_the_window_ends_the_server(installed: Installed, tmp_path: Path) -> None:
    """A browser in app mode, waited for; the runs' folder is another, and so is the server."""
    closed = tmp_path / "closed"
    chromium = tmp_path / "chromium"
    chromium.write_text(f'#!/bin/sh\necho "$1" > "{tmp_path}/address"\nwhile [ ! -e "{closed}" ]; do sleep 0.1; done\n')
    chromium.chmod(0o755)
    installed = Installed(installed.place, installed.program)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    installed.environment |= {"PATH": path, "DISPLAY": ":9", "CONTRASTIVE_LAB_RUNS": str(tmp_path / "runs")}
    process = installed.begin()
    end = time.monotonic() + PATIENCE
    while not (tmp_path / "address").exists() and time.monotonic() < end:
        time.sleep(0.1)
    link = (tmp_path / "address").read_text().strip().removeprefix("--app=")
    assert link.startswith("file:///")
    file = Path(unquote(urlsplit(link).path))
    found = ADDRESS.search(file.read_text())
    assert found
    assert "token=" in found[0]
    assert answers(found[0])
    closed.touch()
    assert process.wait(PATIENCE) == 0
    assert not answers(found[0])
    assert not file.exists()
