"""A folder dropped onto Train becomes a data set; what is no image is named."""

from pathlib import Path
from typing import Any

from patience import PATIENCE
from PIL import Image


def test_a_dropped_folder_is_a_data_set(filled_app: str, page: Any, tmp_path: Path) -> None:
    for name in ("cats", "dogs"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for i in range(5):
            Image.new("RGB", (20, 12)).save(tmp_path / "pets" / name / f"{i}.png")
    (tmp_path / "pets" / "cats" / "notes.png").write_text("no image")
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"{filled_app}/train?data=folder")
    page.get_by_text("At most 5,000 files and 1,000 MB").wait_for()  # said before
    page.locator("[data-testid=stFileUploaderDropzoneInput]").set_input_files(tmp_path / "pets")
    page.get_by_text("11 files in 2 folders").wait_for()
    page.get_by_role("button", name="Use these images").click()
    page.get_by_text("10 images · 2 classes").wait_for()
    page.get_by_text("1 dropped files were not copied").click()
    page.get_by_text("pets/cats/notes.png").wait_for()
    page.reload()
    page.get_by_text("10 images · 2 classes").wait_for()
