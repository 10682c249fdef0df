"""A plain array of embeddings and its labels beside it, opened on Explore: three files of each."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import SLOW
from visits import Visit


def array(values: Any) -> bytes:
    content = io.BytesIO()
    np.save(content, values)
    return content.getvalue()


X = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
LABELS = {  # name: content, and a class that the map's legend then counts
    "names.csv": (("label\n" + "cat\ndog\nowl\n" * 20).encode(), ("cat", 20)),
    "numbers.npy": (array(np.arange(60) % 4), ("3", 15)),
    "lines.txt": (("left\nright\n" * 30).encode(), ("right", 30)),
}
LIES = {
    "short.csv": (b"1\n2\n", "short.csv has 2 labels, but there are 60 rows of embeddings"),
    "wide.npy": (array(np.zeros((60, 2))), "wide.npy must contain (n) labels"),
    "empty.txt": (b"", "empty.txt is empty"),
}


@pytest.mark.parametrize("by", ["upload", "path"])
def test_labels_of_a_file_of_their_own_count_or_are_refused(
    filled_app: str, page: Any, tmp_path: Path, by: str
) -> None:
    page.set_default_timeout(SLOW)
    vectors = tmp_path / f"{by}.npy"
    vectors.write_bytes(array(X + len(by)))
    for name, (content, _) in {**LABELS, **LIES}.items():
        (tmp_path / name).write_bytes(content)
    visit = Visit(page)
    visit.open(f"{filled_app}/explore?run=simclr-digits")
    popover = page.get_by_test_id("stPopoverBody")

    def give(label: str, path: Path, upload: str) -> None:
        if by == "path":
            field = popover.get_by_role("textbox", name=label)
            field.fill(str(path))
            field.press("Tab")
        else:
            field = popover.get_by_test_id("stFileUploader").filter(has_text=upload)
            field.locator("input[type=file]").set_input_files(path)
            field.get_by_text(path.name).first.wait_for()  # the popover may name it as opened before
        visit.answers.wait(0)

    for good, bad in zip(LABELS, LIES, strict=True):
        before = page.url
        page.get_by_role("button", name="Open my embeddings").click()
        popover.wait_for()
        popover.get_by_text("Labels, pictures and columns").click()
        give("or, instead, its path", vectors, "A file")
        give("or the path of the labels", tmp_path / bad, "Labels of its rows")
        popover.get_by_role("button", name="Look at it").click()
        popover.get_by_text(LIES[bad][1]).wait_for()
        if by == "upload":
            popover.get_by_role("button", name="Remove").last.click()
        give("or the path of the labels", tmp_path / good, "Labels of its rows")
        popover.get_by_role("button", name="Look at it").click()
        page.wait_for_url(lambda url: "vectors=" in url and url != before)  # noqa: B023
        visit.answers.wait(0)
        page.get_by_role("heading", name=vectors.name).wait_for()
        name, count = LABELS[good][1]
        page.locator(".legend button", has_text=re.compile(rf"^{name}\s*{count}$")).wait_for(state="attached")
        page.get_by_text("kNN").first.wait_for(state="attached")  # a score that needs labels
