"""The Samples page without a browser: lists, filters, decisions, across runs, what has no image."""

import csv
import importlib
import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from opened_page import page_on
from sample_desk import Desk, button, opened, text_of
from sample_sets import blobs
from streamlit.delta_generator import DeltaGenerator

from contrastive_core import runs
from contrastive_core.base.score import Score
from contrastive_core.base.storage import runs_home
from contrastive_core.data import datasets
from contrastive_core.engine import client
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples import losses as sample_losses
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_lists import LISTS
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import nearest_of
from contrastive_lab import cache, home
from contrastive_lab.components.cut_off import CutOff
from contrastive_lab.samples import lists, subject
from contrastive_lab.samples.retrain import change_of

pytestmark = pytest.mark.usefixtures("no_processes")


def called(name: str) -> Any:
    """The function that the worker would call."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function).body


def test_lists_filters_and_decisions(desk: Desk) -> None:
    run = runs.load("simclr-digits")
    table = make_table(request_of(run.name, "test"))
    ranked = table.ranked("mislabeled")
    app = opened(run=run.name, split="test", every="yes")
    assert not app.exception
    assert desk.place == "1 of 360"
    assert desk.item.id == str(table.columns["id"][ranked[0]])
    assert desk.item.id in text_of(app)
    next(m for m in app.multiselect if m.label == "Classes").select("3").run()
    threes = [str(table.columns["id"][r]) for r in ranked if table.columns["label"][r] == "3"]
    assert desk.place == f"1 of {len(threes)}"
    own = request_of(run.name, "test", "nt_xent").decisions()
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
            make_table(request_of(name, split))
    app = opened(run="simclr-digits", list="outlier", split="both", every="yes")
    assert not app.exception
    assert desk.place == "1 of 1797"
    assert {item.badge for item in desk.bench.items} == {"train", "test"}
    of_test = next(item for item in desk.bench.items if item.badge == "test")
    desk.events(("drop", of_test.id, ""))
    app.run()
    own = request_of("simclr-digits", "test", "nt_xent").decisions()
    assert set(sample_annotations.marks(own)) == {of_test.id}
    before = desk.bench.go
    desk.report = {"nonce": "w", "go": before, "at": of_test.id}
    next(c for c in app.selectbox if c.label == "Images").set_value("train").run()
    assert desk.bench.go > before  # what the bench had at hand is of another list
    assert {item.badge for item in desk.bench.items} == {""}
    desk.report = {}
    opened(run="moco_v2-digits", list="outlier", sample=of_test.id, split="both")
    assert (desk.item.id, desk.item.mark) == (of_test.id, "drop")


def test_why_this_loss_shows_the_two_views_that_it_speaks_of(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "call", lambda function, *asked: called(function)(*asked))
    make_table(request_of("simclr-digits", "test"))
    app = opened(run="simclr-digits", split="test", list="loss", view="Why this loss")
    assert not app.exception
    said = [one.caption for image in app.get("image") for one in image.proto.imgs]
    assert said == ["view 1, the anchor", "view 2, its positive"]
    assert "This is the loss of its first view" in text_of(app)


def test_a_false_negative_is_a_match_or_none_and_no_label_changes(desk: Desk) -> None:
    table = make_table(request_of("simclr-digits", "test"))
    request = request_of("simclr-digits", "test", "nt_xent")
    app = opened(run="simclr-digits", split="test", list="false_negative")
    assert not app.exception
    assert [(choice.text, choice.key) for choice in desk.bench.choices] == [("Is a match", "M"), ("Is no match", "N")]  # type: ignore[union-attr]
    first, second = (str(table.columns["id"][row]) for row in table.ranked("false_negative")[:2])
    other = str(table.extra["lookalike"][table.row(first)])
    assert (desk.item.id, desk.item.suggested, desk.item.evidence[0].near[0].text.split(":")[0]) == (
        first,
        other,
        "pushed away",
    )
    desk.events(("relabel", first, other), ("keep", second, ""), ("drop", second, ""))  # the last is not offered
    app.run()
    marks = sample_annotations.marks(request.decisions("false_negative"))
    assert {i: (m["what"], m["label"]) for i, m in marks.items()} == {first: ("relabel", other), second: ("keep", None)}
    assert "Decided: 1 match, 1 no match." in text_of(app)
    assert not sample_annotations.marks(request.decisions())
    assert "Train again" not in text_of(app)  # they change no training
    opened(run="simclr-digits", split="test", list="outlier")
    assert desk.item.mark == ""


def test_a_bookmark_opens_its_sample_on_any_list(desk: Desk) -> None:
    run = runs.load("simclr-digits")
    table = make_table(request_of(run.name, "test"))
    wanted = str(table.columns["id"][17])
    for name in ("loss", "duplicate", "outlier", "false_negative"):
        app = opened(run=run.name, split="test", sample=wanted, list=name, every="yes")
        assert not app.exception
        place = int(np.flatnonzero(table.ranked(name) == 17)[0]) + 1
        assert desk.place == f"{place} of 360"
        assert desk.item.id == wanted
        assert len(desk.item.evidence[-1].near) == 6
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


def test_a_link_from_elsewhere_makes_no_example_until_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_on("home", monkeypatch)
    del app.session_state[home.OFFERED]  # a session that such a link begins has not seen the front page
    app.query_params["example"] = "wrong-labels"
    app.switch_page("pages/samples.py").run()
    assert not (runs_home() / home.EXAMPLE).exists()
    next(b for b in app.button if b.label.startswith("Make the example")).click().run()
    assert not app.exception
    assert (runs_home() / home.EXAMPLE / "run.json").exists()
    assert "ten labels of these training images were changed on purpose" in text_of(app)


def test_the_third_doors_example_is_said_to_be_planted(desk: Desk) -> None:
    home.make()
    app = opened(example="wrong-labels")  # its table came along: nothing is computed
    assert not app.exception
    assert "ten labels of these training images were changed on purpose" in text_of(app)
    assert app.query_params["run"] in (home.EXAMPLE, [home.EXAMPLE])
    assert "example" not in app.query_params
    names, planted = ("digits", "digits_mislabeled"), set[str]()
    for split, count in (("test", 3), ("train", 10)):
        right, wrong = (datasets.load(name, split) for name in names)
        planted = {wrong.ids[i] for i in np.flatnonzero(right.labels != wrong.labels)}
        assert (len(planted), right.ids) == (count, wrong.ids)
    suspects = [item.id for item in desk.bench.items]
    assert planted <= set(suspects)
    assert desk.bench.total == len(suspects) <= 12
    assert runs.load(home.EXAMPLE).weights_hash() == runs.load("simclr-digits").weights_hash()
    assert not [r.name for r in runs.list_runs() if r.name == home.EXAMPLE and r.shipped]


def test_vectors_without_pictures_or_labels_are_listed_as_a_table(desk: Desk) -> None:
    rows = EmbeddingSet(blobs().features)
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(rows, "bare.npy")
    make_table(request_of(name, "train", "sup_con"))
    app = opened(on=name, every="yes")
    assert not app.exception
    assert desk.place == "1 of 300"
    assert len(app.dataframe[0].value) == 300


def test_labels_that_are_numbers_can_be_changed(desk: Desk) -> None:
    rows = blobs()
    numbered = EmbeddingSet(rows.features, rows.labels, rows.ids)
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(numbered, "numbers.npy")
    made = make_table(request_of(name, "train", "sup_con"))
    assert not made.classes
    app = opened(on=name)
    assert not app.exception
    assert desk.bench is not None
    assert list(desk.bench.classes) == [str(n) for n in sorted({*numbered.labels.tolist()})]  # type: ignore[union-attr]
    item = desk.item  # its evidence has no pictures: the near labels, and the nearest rows of both classes
    assert sum(count for _label, count in item.tally) == 20
    of_labels = [f"Nearest rows labeled {k}, cosine similarity" for k in dict.fromkeys((item.suggested, item.given))]
    assert [group.title for group in item.evidence] == [*of_labels, "Nearest rows, cosine similarity"]
    assert re.fullmatch(r"\S+ · -?[01]\.\d\d", item.evidence[0].near[0].text)
    app = opened(on=name, list="outlier", sample="17")  # as Back has it
    assert desk.item.id == "17"


def test_losses_among_some_samples_say_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = blobs()
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(rows, "many.npy")
    monkeypatch.setattr(sample_losses, "EXACT_UP_TO", 1)
    monkeypatch.setattr(sample_losses, "CANDIDATES", 100)
    make_table(request_of(name, "train", "sup_con"))
    app = opened(on=name, list="loss")
    assert not app.exception
    assert "Each loss is computed among 100 random samples" in text_of(app)
    assert "random samples" not in text_of(opened(on=name, list="mislabeled"))


def test_the_accuracies_of_a_retrained_run_have_an_interval() -> None:
    rng = np.random.default_rng(0)
    before, after = (rng.random((2, 400)) < [[0.39], [0.41]]).astype(float)

    def score(right: np.ndarray, **arrays: np.ndarray) -> Score:
        half = 1.96 * np.sqrt(0.24 / 400)
        ends = (right.mean() - half, right.mean() + half)
        return Score("kNN", value=float(right.mean()), interval=ends, unit="share", arrays=arrays)

    paired = change_of(score(before, per_sample=before), score(after, per_sample=after))
    alone = change_of(score(before), score(after))
    difference = 100 * (after - before).mean()
    for said in (paired, alone):
        assert said.startswith(f"kNN accuracy {100 * before.mean():.1f} % before, {100 * after.mean():.1f} % now: ")
        assert f"{difference:+.1f} points (95 % CI " in said
        low, high = (float(end) for end in said.split("CI ")[1].rstrip(")").split(" to "))
        assert low < difference < high
        assert 4 < high - low < 16


def test_a_decision_that_another_window_made_meanwhile_is_announced_and_stays(desk: Desk) -> None:
    table = make_table(request_of("simclr-digits", "test"))
    file = request_of("simclr-digits", "test", "nt_xent").decisions()
    first, second, third = (str(table.columns["id"][row]) for row in LISTS["loss"].order(table)[:3])
    sample_annotations.add(file, first, "keep")
    app = opened(run="simclr-digits", split="test", list="loss")
    assert desk.item.id == second  # a visit opens on the first that is undecided
    sample_annotations.add(file, second, "drop", by="another window")
    desk.events(("keep", second, ""), ("keep", third, ""))
    app.run()
    assert {i: m["what"] for i, m in sample_annotations.marks(file).items()} == {
        first: "keep",
        second: "drop",
        third: "keep",
    }
    assert f"{second} was decided elsewhere in the meantime." in app.toast[0].value
    desk.events(("undo", "", ""))
    app.run()
    assert f"Undone: {third} was kept." in app.toast[0].value
    assert not app.exception


def test_a_pair_of_label_and_suggestion_is_left_on_the_list_until_its_button_is_pressed(desk: Desk) -> None:
    table = make_table(request_of("simclr-digits", "test"))
    wrong = np.flatnonzero(table.columns["mislabeled"] > 0.5)
    label, other = (str(names[wrong[0]]) for names in (table.columns["label"], table.extra["suggested"]))
    same = (table.columns["label"][wrong] == label) & (table.extra["suggested"][wrong] == other)
    app = opened(run="simclr-digits", split="test", every="yes", pair=f"{label} → {other}")
    assert {item.id for item in desk.bench.items} == {*table.columns["id"][wrong[same]].tolist()}
    next(b for b in app.button if b.label == f"{label} → {other} ✕").click().run()
    assert desk.bench.total == len(table)
    sample = desk.item.id
    button(app, "Images nearest to this one").click().run()
    assert (desk.bench.total, desk.item.id) == (30, sample)
    rows = cache.embedding(request_of("simclr-digits", "test").embedding)
    near = nearest_of(rows, [*rows.ids].index(sample), 29)[0]
    assert [item.id for item in desk.bench.items] == [sample, *(rows.ids[i] for i in near)]
    next(b for b in app.button if b.label.startswith("Nearest to ")).click().run()
    assert desk.bench.total == len(table)


def test_a_table_that_is_not_there_is_asked_for_once(no_processes: list[str]) -> None:
    app = opened(run="simclr-digits", split="test")
    assert not app.exception
    assert [n for n in no_processes if "samples-test" in n]


def test_what_takes_minutes_is_begun_when_it_is_asked_for(
    no_processes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MANY", 299)
    monkeypatch.setattr(client, "call", lambda function, *asked: called(function)(*asked))
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(blobs(), "large.npy")
    app = opened(on=name)
    assert "these 300 rows" in text_of(app)
    assert not no_processes
    assert "take about 1 min" in text_of(app)
    button(app, "Look for odd samples").click().run()
    assert [n for n in no_processes if "samples-train" in n]
    assert not app.exception


def test_a_long_list_is_shown_in_part_and_saved_whole(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "ROWS", 120)
    files: dict[str, Callable[[], Any]] = {}
    monkeypatch.setattr(
        DeltaGenerator, "download_button", lambda self, label, data, name, *a, **k: files.__setitem__(name, data)
    )
    name = loaded_vectors.PREFIX + loaded_vectors.save_vectors(blobs(), "paged.npy")
    made = make_table(request_of(name, "train", "sup_con"))
    ids = [str(made.columns["id"][r]) for r in made.ranked("outlier")]
    app = opened(on=name, list="outlier")
    assert app.dataframe[0].value["id"].tolist() == ids[:120]
    assert "The first 120 of 300 rows" in text_of(app)
    listed = list(csv.DictReader(io.StringIO(str(files["outlier.csv"]()))))
    assert [line["id"] for line in listed] == ids
    assert [line["place"] for line in listed] == [str(place) for place in range(1, 301)]
    every = list(csv.DictReader(io.StringIO(str(files["labels.csv"]()))))
    for name in ("id", "label"):
        assert [line[name] for line in every] == made.columns[name].tolist()
    assert not app.exception


def test_every_cut_off_counts_and_leaves_what_is_above(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.load("simclr-digits")
    table = make_table(request_of(run.name, "test"))
    score = table.score("mislabeled")
    drawn: list[tuple[CutOff, Callable[[], None]]] = []
    monkeypatch.setattr(lists, "draw_cut_off", lambda *a: drawn.append((a[0], a[2])))
    app = opened(run=run.name, split="test")
    for cut in (0.02, 0.06, 0.1):
        app = opened(run=run.name, split="test", cut=str(cut))
        shown, _ = drawn[-1]
        assert shown.cut == pytest.approx(cut)
        count = int((score > cut).sum())
        assert count > 0
        assert desk.place == f"1 of {count}"
        assert shown.heads[round(cut * 50)] == f"{count} with suspicion > {cut:.2f}"
    assert sum(drawn[-1][0].counts) == 360
    opened(run=run.name, split="test", cut="1")
    assert desk.place == "1 of 360"  # nothing above: all, the likeliest first
    opened(run=run.name, split="test", cut="0.02", every="yes")
    assert desk.place == "1 of 360"
    assert not any(said in text_of(app) for said in ("95 %", "look wrong", "labels are wrong", "wrong labels of"))
    assert not app.exception
