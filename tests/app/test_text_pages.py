"""No page speaks of images where all rows are texts, in either language."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened_page import opened

from contrastive_core.compare.comparison import comparison_request
from contrastive_core.engine import answers
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import example_questions, loaded_vectors
from contrastive_core.spaces.loaded_vectors import open_vectors
from contrastive_core.spaces.space import Space

WORDS = {"en": re.compile(r"\b(image|picture|photo)s?\b", re.IGNORECASE), "zh": re.compile("图像|图片|照片")}
ELSEWHERE = (":material/folder_open:", "lesson")  # a popover that opens files, and lists of lessons
NOT_TEXT = re.compile(r":material/\w+:|<style>.*?</style>|image[-_]\w+|\w+[-_]image|<p dir=\"auto\">.*?</p>", re.DOTALL)


def drawn(app: Any) -> Iterator[str]:
    """Yield the texts of each element, with help and options, without what is about other files and lessons."""
    open_nodes = [app._tree]
    while open_nodes:
        node = open_nodes.pop()
        proto = getattr(node, "proto", None)
        if proto is None or not any(word in str(proto) for word in ELSEWHERE):
            open_nodes += getattr(node, "children", {}).values()
            if proto is not None and node.type != "bidi_component":
                yield from texts(proto)


def texts(proto: Any) -> Iterator[str]:
    for field, value in proto.ListFields():
        values = value if field.is_repeated else [value]
        for one in values:
            if field.type == field.TYPE_MESSAGE and hasattr(one, "ListFields"):
                yield from texts(one)
            elif isinstance(one, str):
                yield f"{field.name}: {NOT_TEXT.sub('', one)}"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The example of questions and answers by two models, with the results that pages show."""
    keys = [open_vectors(file, file.name) for file in example_questions.write(tmp_path)]
    spaces = [Space.of_vectors(key) for key in keys]
    for every_score in (False, True):
        answers.make("comparison", comparison_request(spaces, every_score))
    for space in spaces:
        answers.make("towers", {"space": space.values})
    name = loaded_vectors.PREFIX + keys[0]
    answers.make("tower_pairs", {"space": request_of(name, "train", pairs=True).embedding.values})
    return keys


PLACES = [
    ("explore", {"vectors": "{0}", "map": "pca"}),
    ("loss_lab", {"rows": "file", "file": "{0}", "size": "16"}),
    ("samples", {"on": "vectors:{0}"}),
    ("samples", {"on": "vectors:{0}", "list": "false_negatives"}),
    ("samples", {"on": "vectors:{0}", "list": "given_negatives"}),
    *(("compare", {"runs": "vectors:{0},vectors:{1}", "view": view}) for view in
      ("Overview", "Disagreements", "Similarity", "Tables", "Duels", "Match threshold")),
]  # fmt: skip


@pytest.mark.parametrize("language", WORDS)
def test_no_page_speaks_of_images_where_rows_are_texts(
    language: str, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for page, address in PLACES:
        query = {name: value.format(*files) for name, value in address.items()}
        app = opened(page, monkeypatch, lang=language, **query)
        assert not app.exception
        assert "list" not in query or query["list"] in app.query_params["list"]  # the list exists
        found += [(page, address.get("view", ""), text) for text in drawn(app) if WORDS[language].search(text)]
    assert not found, "\n".join(map(str, found))
