"""Samples without a browser: what is selected on a map, near an own picture, or disputed is a list of its own."""

import io

import numpy as np
import pytest
from PIL import Image
from sample_desk import Desk, opened

from contrastive_core.data import datasets
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import request_of
from contrastive_lab import cache, state

pytestmark = pytest.mark.usefixtures("no_processes")


def test_what_is_selected_on_a_map_is_a_list_of_its_own_decided_with_one_undo(desk: Desk) -> None:
    table = make_table(request_of("simclr-digits", "test"))
    file = request_of("simclr-digits", "test", "nt_xent").decisions()
    rows = cache.embedding(request_of("simclr-digits", "test").embedding)
    some = [3, 5, 8]
    app = opened(run="simclr-digits", split="test", every="yes")
    place = state.place_of(request_of("simclr-digits", "test").embedding)
    app.session_state["selection"] = {place: some}
    app.query_params["selected"] = "yes"
    app.switch_page("pages/explore.py").run()
    for name, value in {"run": "simclr-digits", "split": "test", "every": "yes", "selected": "yes"}.items():
        app.query_params[name] = value
    app.switch_page("pages/samples.py").run()
    assert not app.exception
    assert {item.id for item in desk.bench.items} == {rows.ids[i] for i in some}
    address = {name: app.query_params[name] for name in ("split", "every", "selected", "picked")}
    again = opened(run="simclr-digits", **address)  # a reload: nothing is selected in its session
    assert {item.id for item in desk.bench.items} == {rows.ids[i] for i in some}
    assert again.session_state["selection"] == {place: some}
    items = [{"id": item.id, "label": ""} for item in desk.bench.items]
    desk.report = {"nonce": "w", "go": desk.bench.go, "at": "", "list": "mislabeled"}
    desk.report["events"] = [{"seq": 1, "what": "drop", "items": items}]
    app.run()
    assert set(sample_annotations.marks(file)) == {item["id"] for item in items} <= set(table.columns["id"])
    desk.events(("undo", "", ""))
    app.run()
    assert not sample_annotations.marks(file)


def test_the_images_nearest_to_an_own_picture_in_both_splits_are_a_list_until_its_button_is_pressed(desk: Desk) -> None:
    count = sum(len(make_table(request_of("simclr-digits", split))) for split in ("train", "test"))
    data, picture = datasets.load("digits", "test"), io.BytesIO()
    Image.fromarray(np.asarray(data.images[7, 0])).save(picture, "PNG")
    app = opened(run="simclr-digits", split="both", every="yes")
    app.file_uploader[0].upload("mine.png", picture.getvalue()).run()
    assert not app.exception
    assert (desk.bench.total, desk.item.id) == (30, data.ids[7])
    near = {item.id for item in desk.bench.items}
    assert near & set(data.ids)
    assert near & set(datasets.load("digits", "train").ids)
    again = opened(run="simclr-digits", split="test", picture=app.query_params["picture"])  # as after a reload
    assert (desk.bench.total, desk.item.id) == (30, data.ids[7])
    assert any(b.label.startswith("Nearest to mine") for b in again.button)
    next(b for b in app.button if b.label.startswith("Nearest to mine")).click().run()
    assert desk.bench.total == count
    assert "picture" not in app.query_params
    app.file_uploader[0].upload("none.png", b"no image").run()
    assert "This file cannot be read as an image" in app.error[0].value
    assert desk.bench.total == count
    for name in ("0" * 16, "../lists/x", "no such"):  # of an address that somebody made
        strange = opened(run="simclr-digits", split="both", every="yes", picture=name, picked=name, selected="yes")
        assert not strange.exception
        assert desk.bench.total == count
    assert not app.exception


def test_samples_on_which_reviewers_disagree_are_a_list_with_what_each_said(desk: Desk) -> None:
    table = make_table(request_of("simclr-digits", "test"))
    file = request_of("simclr-digits", "test", "nt_xent").decisions()
    disputed, agreed, changed = (str(table.columns["id"][row]) for row in (4, 9, 12))
    for name, what in (("Ada", "keep"), ("Ben", "keep"), ("Ben", "drop")):  # the last word counts
        sample_annotations.add(file, disputed, what, reviewer=name)
        sample_annotations.add(file, agreed, "keep", reviewer=name)
        sample_annotations.add(file, changed, what, reviewer="Ben")
    app = opened(run="simclr-digits", split="test", every="yes", disagree="yes")
    assert not app.exception
    assert [item.id for item in desk.bench.items] == [disputed]
    assert "Reviewers disagree: Ada: keep, Ben: drop." in desk.item.why
