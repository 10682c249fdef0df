"""The Samples page without a browser: lists, filters, decisions, across runs, what has no image."""

from __future__ import annotations

import csv
import importlib
import io
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from sample_desk import Desk, button, opened, text_of
from sample_sets import blobs
from streamlit.delta_generator import DeltaGenerator

from contrastive_core.data import datasets
from contrastive_core.engine import client
from contrastive_core.paths import SHIPPED
from contrastive_core.records import loaded_vectors, runs
from contrastive_core.records.embedding_set import EmbeddingSet
from contrastive_core.records.sample_request import request_of
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples import run_samples as sample_build
from contrastive_lab import cache
from contrastive_lab.samples import example, lists, table_picker

pytestmark = pytest.mark.usefixtures("no_processes")


def called(name: str) -> Any:
    """The function that the worker would call."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def test_lists_filters_and_decisions(desk: Desk) -> None:
    run = runs.load("simclr-digits")
    table = sample_build.samples_of_run(run, split="test")
    ranked = table.ranked("mislabeled")
    app = opened(run=run.name, split="test", every="yes")
    assert not app.exception
    assert desk.place == "1 of 360"
    assert desk.item.id == str(table.columns["id"][ranked[0]])
    assert desk.item.id in text_of(app)
    next(m for m in app.multiselect if m.label == "Classes").select("3").run()
    threes = [str(table.columns["id"][r]) for r in ranked if table.columns["label"][r] == "3"]
    assert desk.place == f"1 of {len(threes)}"
    own = request_of(run.name, "test", "nt_xent").marked
    suggested = dict(zip(table.columns["id"], table.extra["suggested"], strict=True))
    desk.events(("keep", threes[0], ""), ("drop", threes[1], ""), ("relabel", threes[2], "9"))
    desk.report["at"] = threes[3]
    app.run()
    assert desk.place == f"4 of {len(threes)}"
    assert desk.bench.ack == {"nonce": "w", "seq": 3}
    app.run()  # the browser reports it again until it hears that it was kept
    marks = sample_annotations.marks(own)
    assert [(i, m["what"], m["label"]) for i, m in marks.items()] == [
        (threes[0], "keep", None),
        (threes[1], "drop", None),
        (threes[2], "relabel", "9"),
    ]
    assert marks[threes[1]]["given"] == "3"
    assert marks[threes[1]]["suggested"] == suggested[threes[1]]
    assert [item.mark for item in desk.bench.items[:4]] == ["keep", "drop", "relabel", ""]
    desk.events(("undo", "", ""))
    app.run()
    assert set(sample_annotations.marks(own)) == set(threes[:2])
    assert "1 kept, 0 relabeled, 1 dropped" in text_of(app)
    button(app, "Drop 8").click().run()
    assert set(sample_annotations.marks(own)) == set(threes[:10])
    desk.events(("undo", "", ""))
    app.run()
    assert set(sample_annotations.marks(own)) == set(threes[:2])
    button(app, "Relabel 8 as suggested").click().run()
    new = {i: m["label"] for i, m in sample_annotations.marks(own).items() if m["label"]}
    assert new == {i: suggested[i] for i in threes[2:10]}
    assert not app.exception


def test_train_and_test_are_one_list_that_another_run_shows_decided(desk: Desk) -> None:
    for name in ("simclr-digits", "moco_v2-digits"):
        for split in ("train", "test"):
            sample_build.samples_of_run(runs.load(name), split=split)
    app = opened(run="simclr-digits", list="ambiguous", split="both", every="yes")
    assert not app.exception
    assert desk.place == "1 of 1797"
    assert {item.badge for item in desk.bench.items} == {"train", "test"}
    of_test = next(item for item in desk.bench.items if item.badge == "test")
    desk.events(("drop", of_test.id, ""))
    app.run()
    own = request_of("simclr-digits", "test", "nt_xent").marked
    assert set(sample_annotations.marks(own)) == {of_test.id}
    desk.report = {}
    opened(run="moco_v2-digits", list="ambiguous", sample=of_test.id, split="both")
    assert (desk.item.id, desk.item.mark) == (of_test.id, "drop")
    train = opened(run="simclr-digits", list="loss", split="train")
    assert not train.exception
    assert {item.badge for item in desk.bench.items} == {""}


def test_a_list_that_is_still_being_made_says_so(desk: Desk) -> None:
    app = opened(run="simclr-digits", split="both", every="yes")
    assert not app.exception
    said = text_of(app)
    assert "The test samples are still being scored. Until then the list has 1,437 samples." in said
    assert "of the 1,437 labels scored so far look wrong" in said
    assert desk.bench.so_far
    place, sample = desk.place, desk.item.id
    sample_build.samples_of_run(runs.load("simclr-digits"), split="test")
    app.run()  # the list keeps its place until the new rows are asked for
    assert (desk.place, desk.item.id) == (place, sample)
    assert "360 more samples have been scored." in text_of(app)
    button(app, "Add them to the list").click().run()
    assert desk.bench.total == 1797
    assert desk.item.id == sample
    assert {item.badge for item in desk.bench.items} == {"train", "test"}
    before = desk.bench.go
    desk.report = {"nonce": "w", "go": before, "at": next(i.id for i in desk.bench.items if i.badge == "test")}
    next(c for c in app.button_group if c.label == "Images").set_value("train").run()
    assert desk.bench.go > before  # what the bench had at hand is of another list
    assert f"{desk.item.id} ·" in text_of(app)
    app = opened(run="simclr-digits")  # the training images: whole, as far as it was asked for
    assert "so far" not in text_of(app)
    assert not desk.bench.so_far


def test_a_bookmark_opens_its_sample_on_any_list(desk: Desk) -> None:
    run = runs.load("simclr-digits")
    table = sample_build.samples_of_run(run, split="test")
    wanted = str(table.columns["id"][17])
    for name in ("loss", "duplicate", "hub", "outlier", "ambiguous", "false_negative"):
        app = opened(run=run.name, split="test", sample=wanted, list=name, every="yes")
        assert not app.exception
        place = int(np.flatnonzero(table.ranked(name) == 17)[0]) + 1
        assert desk.place == f"{place} of 360"
        assert desk.item.id == wanted
        assert len(desk.item.near) == 6
    short = opened(run=run.name, sample=wanted)  # the address need not name the split
    assert short.query_params["split"] in ("test", ["test"])
    assert wanted in text_of(short)
    gone = opened(run=run.name, split="test", sample="digits/9999")
    assert "There is no sample digits/9999" in text_of(gone)
    other = opened(run=run.name, split="test", every="yes")
    other.session_state["sample-at"] = "796"  # it was at hand among vectors, nobody asked for it
    other.run()
    assert desk.place == "1 of 360"
    assert "There is no sample" not in text_of(other)


def test_the_third_doors_example_is_said_to_be_planted(desk: Desk) -> None:
    example.make()
    app = opened(example="wrong-labels")  # its table came along: nothing is computed
    assert not app.exception
    assert "thirteen labels of these digits were changed on purpose" in text_of(app)
    assert app.query_params["run"] in (example.NAME, [example.NAME])
    assert "example" not in app.query_params
    right, wrong = (datasets.load(name, "train") for name in ("digits", "digits_mislabeled"))
    planted = {wrong.ids[i] for i in np.flatnonzero(right.labels != wrong.labels)}
    suspects = [item.id for item in desk.bench.items]
    assert len(planted) == 10
    assert planted <= set(suspects)
    assert desk.bench.total == len(suspects) <= 12
    assert runs.load(example.NAME).weights_hash() == runs.load("simclr-digits").weights_hash()
    assert not [r.name for r in runs.list_runs() if r.name == example.NAME and r.shipped]


def test_two_runs_are_compared_sample_by_sample() -> None:
    for name in ("simclr-digits", "sup_con-digits"):
        table = sample_build.samples_of_run(runs.load(name), split="test")
        assert table.extra["loss_by_draw"].shape == (360, 2)
        assert 0 < table.facts["variance_share"] < 1
    address = {"run": "simclr-digits", "split": "test", "part": "Across runs"}
    app = opened(**address, **{"with": "sup_con-digits"})
    assert not app.exception
    assert "Rank correlation of the two losses" in text_of(app)
    kinds = next(r for r in app.radio if r.label == "Samples").options
    assert sum(int(k.rsplit(" ", 1)[1]) for k in kinds) == 360


def test_what_was_learned_late_opens_from_its_curve(desk: Desk) -> None:
    run = runs.create("followed", runs.load("simclr-digits").config)
    shutil.copy(SHIPPED / "simclr-digits" / "weights.safetensors", run.weights)
    _, _, z = sample_build.rows_of(run, "train")
    rng = np.random.default_rng(0)
    for epoch, noise in ((1, 3.0), (2, 0.1)):
        moved = z.features + noise * rng.normal(size=z.features.shape)
        run.save_snapshot(epoch, index=np.arange(len(z)), h=moved, z=moved, labels=z.labels)
    table = sample_build.samples_of_run(run)
    app = opened(run="followed", part="Over time", split="train", every="yes")
    assert not app.exception
    assert "1,437 of 1,437 samples are followed, at epochs 1, 2" in text_of(app)
    first = next(b for b in app.button if b.label == "Open")
    ids = {f"time-{cache.digest(str(i))}": str(i) for i in table.columns["id"]}
    sample = ids[first.key]
    first.click().run()
    assert not app.exception
    assert f"{sample} ·" in text_of(app)
    place = int(np.flatnonzero(table.ranked("mislabeled") == table.row(sample))[0]) + 1
    assert desk.place == f"{place} of 1437"


def test_snapshots_that_follow_a_part_say_which_and_lead_there(desk: Desk) -> None:
    """The table was made before there were snapshots; they follow the last 50 samples."""
    run = runs.create("partly", runs.load("simclr-digits").config)
    shutil.copy(SHIPPED / "simclr-digits" / "weights.safetensors", run.weights)
    table = sample_build.samples_of_run(run)
    _, _, z = sample_build.rows_of(run, "train")
    index = np.arange(len(z) - 50, len(z))
    run.save_snapshot(3, index=index, h=z.features[index], z=z.features[index], labels=z.labels[index])
    ranked = table.ranked("mislabeled")
    assert ranked[0] not in index
    address = {"run": "partly", "view": "Over time", "split": "train", "every": "yes"}
    app = opened(**address)
    assert "have not been made" in text_of(app)
    assert button(app, "Make them")
    sample_build.samples_of_run(run)
    app = opened(**address)
    assert "50 of 1,437 samples are followed, at epochs 3" in text_of(app)
    assert "do not follow this sample" in text_of(app)
    place = int(np.flatnonzero(np.isin(ranked, index))[0])
    sample = str(table.columns["id"][ranked[place]])
    button(app, f"Go to the next of this list that they follow: {sample}").click().run()
    assert not app.exception
    assert desk.place == f"{place + 1} of 1437"
    assert "do not follow" not in text_of(app)
    only = next(c for c in app.button_group if c.label == "In the run's snapshots")
    only.set_value("yes").run()
    assert desk.place == "1 of 50"
    assert "The filter leaves 50 of 1,437" in text_of(app)


def test_vectors_without_pictures_or_labels_are_listed_as_a_table(desk: Desk) -> None:
    rows = EmbeddingSet(blobs().features)
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(rows, "bare.npy")
    sample_build.samples_of_vectors(request_of(name, "train", "sup_con"), rows, None)
    app = opened(on=name, every="yes")
    assert not app.exception
    assert desk.place == "1 of 300"
    assert len(app.dataframe[0].value) == 300


def test_labels_that_are_numbers_can_be_changed(desk: Desk) -> None:
    rows = blobs()
    numbered = EmbeddingSet(rows.features, rows.labels, rows.ids)
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(numbered, "numbers.npy")
    made = sample_build.samples_of_vectors(request_of(name, "train", "sup_con"), numbered, None)
    assert not made.classes
    app = opened(on=name)
    assert not app.exception
    assert desk.bench is not None
    assert list(desk.bench.classes) == [str(n) for n in sorted({*numbered.labels.tolist()})]  # type: ignore[union-attr]


def test_estimated_losses_say_how_far_off_they_are(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the list of losses; and what cannot be estimated says up to where it is exact."""
    rows = blobs()
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(rows, "many.npy")
    monkeypatch.setattr(sample_losses, "ESTIMATED_FROM", 1)
    monkeypatch.setattr(sample_losses, "EXACT_ONLY_UP_TO", 8 * 250.0**2)
    made = sample_build.samples_of_vectors(request_of(name, "train", "sup_con"), rows, None)
    app = opened(on=name, list="loss")
    assert not app.exception
    off = made.facts["estimate_off"]
    assert "Losses of these 300 samples are estimated from 463 candidates each" in text_of(app)
    assert f"In a check of 300, 95 % are off by at most {off:.2g}" in text_of(app)
    other = opened(on=name, list="mislabeled")
    assert "estimated from" not in text_of(other)
    sample_build.samples_of_vectors(request_of(name, "train", "lifted_structure"), rows, None)
    limited = opened(on=name, loss="lifted_structure")
    assert not limited.exception
    assert "Lifted structure is exact only up to 250 samples" in text_of(limited)
    assert "Highest loss" not in [option for p in limited.pills for option in p.options]


def test_a_table_that_is_not_there_is_asked_for_once(no_processes: list[str]) -> None:
    app = opened(run="simclr-digits", split="test")
    assert not app.exception
    assert [n for n in no_processes if "samples-test" in n]


def test_what_takes_minutes_is_begun_when_it_is_asked_for(
    no_processes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_picker, "MANY", 299)
    monkeypatch.setattr(client, "call", lambda function, *asked: called(function)(*asked))
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(blobs(), "large.npy")
    app = opened(on=name)
    assert "these 300 rows" in text_of(app)
    assert not no_processes
    assert "take about 1 min" in text_of(app)
    assert "The losses will be exact" in text_of(app)
    button(app, "Look for odd samples").click().run()
    assert [n for n in no_processes if "samples-train" in n]
    assert not app.exception


def test_what_the_losses_will_be_is_said_before_minutes_are_spent(
    no_processes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Estimated, or left out; the minutes follow the width of the rows (256 was measured)."""
    monkeypatch.setattr(table_picker, "MANY", 299)
    monkeypatch.setattr(table_picker, "MINUTES", 256 / 8 * 1e6 / 300 * 7)
    monkeypatch.setattr(sample_losses, "ESTIMATED_FROM", 1)
    monkeypatch.setattr(sample_losses, "EXACT_ONLY_UP_TO", 8 * 250.0**2)
    monkeypatch.setattr(client, "call", lambda function, *asked: called(function)(*asked))
    cache.losses_ahead.clear()
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(blobs(), "ahead.npy")
    app = opened(on=name)
    assert "take about 7 min" in text_of(app)
    assert "The losses will be estimated from about 463 candidates each" in text_of(app)
    left_out = opened(on=name, loss="lifted_structure")
    assert "Lifted structure is exact only up to 250 samples" in text_of(left_out)
    assert "these 300 will have no losses" in text_of(left_out)
    bare = EmbeddingSet(blobs().features)
    unlabeled = opened(on=loaded_vectors.PREFIX + loaded_vectors.save_vectors(bare, "bare.npy"))
    assert "Look for odd samples" in [b.label for b in unlabeled.button]
    assert "losses will be" not in text_of(unlabeled)
    cache.losses_ahead.clear()
    assert not no_processes


def test_a_long_list_is_turned_page_by_page_and_saved_whole(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "ROWS", 120)
    files: dict[str, Callable[[], Any]] = {}
    monkeypatch.setattr(
        DeltaGenerator, "download_button", lambda self, label, data, name, *a, **k: files.__setitem__(name, data)
    )
    rows = blobs()
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(rows, "paged.npy")
    made = sample_build.samples_of_vectors(request_of(name, "train", "sup_con"), rows, None)
    ids = [str(made.columns["id"][r]) for r in made.ranked("outlier")]
    app = opened(on=name, list="outlier")
    for page, first in ((1, 0), (3, 240), (2, 120)):
        next(n for n in app.number_input if n.label == "Page of 3").set_value(page).run()
        shown = app.dataframe[0].value
        assert shown["id"].tolist() == ids[first : first + 120]
        assert shown["place"].tolist()[0] == first + 1
        assert f"Rows {first + 1} to {min(first + 120, 300)} of 300" in text_of(app)
    saved = parquet.read_table(io.BytesIO(files["outlier.parquet"]()))  # type: ignore[arg-type]
    assert saved["id"].to_pylist() == ids
    assert saved["place"].to_pylist() == list(range(1, 301))
    listed = list(csv.DictReader(io.StringIO(str(files["outlier.csv"]()))))
    assert [line["id"] for line in listed] == ids
    assert set(listed[0]) == set(saved.column_names)
    assert not app.exception
