"""The random check of Samples: rows to judge, what they say of all labels, and what survives."""

from datetime import datetime

import numpy as np
import pytest
from sample_desk import Desk, opened, text_of

from contrastive_core import runs
from contrastive_core.samples import annotations, label_audit
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import SampleTable, request_of
from contrastive_lab.components.cut_off import CutOff
from contrastive_lab.report.contents import label_checks
from contrastive_lab.samples import lists

pytestmark = pytest.mark.usefixtures("no_processes")


def drawn_ids(table: SampleTable) -> list[str]:
    ids = table.columns["id"]
    return ids[label_audit.draw(ids, np.isfinite(table.columns["mislabeled"]))].tolist()  # type: ignore[no-any-return]


def test_random_rows_give_an_estimate_that_survives_a_reload(desk: Desk) -> None:
    table = make_table(request_of("simclr-digits", "test"))
    order = drawn_ids(table)
    app = opened(run="simclr-digits", split="test", list="random")
    assert not app.exception
    assert desk.place == "1 of 40"
    assert [item.id for item in desk.bench.items[:9]] == order[:9]
    assert desk.item.sentence == "Random row, not a suspect: is this label right?"
    assert (desk.item.wrong, desk.item.looks_like, desk.item.votes) == (None, "", [])  # nobody is told what to think
    assert "These rows are random, not suspects." in text_of(app)
    desk.events(*(("keep", i, "") for i in order[:19]), ("relabel", order[19], "9"))
    desk.report["at"] = order[20]
    app.run()
    told = next(text for text in text_of(app).split("**") if text.startswith("About "))
    assert told.endswith("Random checks: 20, of them wrong: 1.")
    assert "With your decisions applied, at most " in text_of(app)
    marks = annotations.marks(request_of("simclr-digits", "test", "nt_xent").decisions())
    assert {mark["list"] for mark in marks.values()} == {"random"}
    assert marks[order[19]]["what"] == "relabel"
    again = opened(run="simclr-digits", split="test", list="random", checks="120")
    assert desk.place == "21 of 120"
    assert told in text_of(again)
    assert told in text_of(opened(run="simclr-digits", split="test", list="mislabeled"))
    make_table(request_of("moco_v2-digits", "test"))
    assert "Random checks: 20, of them wrong: 1." in text_of(opened(run="moco_v2-digits", split="test", list="random"))
    assert label_checks(runs.load("simclr-digits")) == [f"test split: {told}"]  # of a report
    assert "Suspects to review until about this share of labels is wrong" in text_of(again)
    desk.report = {}
    app = opened(run="simclr-digits", split="test", list="random", checks="240")
    desk.events(*(("keep", i, "") for i in order[20:]))
    desk.report["nonce"] = "of another window"
    app.run()
    assert "This check is done: all 240 rows are decided." in text_of(app)
    assert "You can stop: 95 % sure that fewer than 1 % of labels are wrong" in text_of(app)
    assert not app.exception


def test_two_splits_have_no_common_audit(desk: Desk) -> None:
    for split in ("train", "test"):
        make_table(request_of("simclr-digits", split))
    app = opened(run="simclr-digits", split="both", list="random")
    assert "Choose Train or Test above: error rates belong to one split." in text_of(app)
    assert not app.exception


def test_the_advice_can_be_followed() -> None:
    def said(left: int, remaining: int | None, checked: int = 40, found: int = 0) -> str:
        nothing = np.zeros(0)
        audit = label_audit.Audit(
            number=0,
            interval=(0, 0),
            bound=0.5,
            checked=checked,
            found=found,
            probability=nothing,
            remaining=remaining,
            reviews={},
        )
        of = label_audit.LabelAudit(np.full(left, 0.1), np.full(left, np.nan), nothing, 0, audit)
        assert of.advice[0] == "With your decisions applied, at most 50.0 % are still wrong (95 %)."
        return of.advice[1]

    assert said(300, 100) == "You can stop once 100 more random rows are right."
    assert said(300, 372) == "This set is small: decide on all rows."  # more than there are
    assert said(300, 100, found=3).startswith("Decide on the likely mislabeled samples")  # they will not all be right
    assert said(9000, 700).startswith("Decide on the likely mislabeled samples")


def test_a_place_belongs_to_its_list(desk: Desk) -> None:
    """Random rows open at the first undecided one, whatever was at hand; the last one tells of those before it."""
    table = make_table(request_of("simclr-digits", "test"))
    order = drawn_ids(table)
    app = opened(run="simclr-digits", split="test", list="random")
    desk.events(("keep", order[39], ""))
    desk.report["at"] = order[39]
    app.run()
    assert "39 rows before this one are undecided." in text_of(app)
    next(b for b in app.button if b.label == "Go to the first undecided row").click().run()
    assert desk.place == "1 of 40"
    app.session_state["sample-at"], app.session_state["sample-place"] = "of another data set", 29
    desk.report = {}
    app.run()
    assert desk.place == "1 of 40"
    assert "There is no sample" not in text_of(app)


def test_decisions_on_suspects_move_no_other_sample(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[CutOff] = []
    monkeypatch.setattr(lists, "draw_cut_off", lambda *a: drawn.append(a[0]))
    table = make_table(request_of("simclr-digits", "test"))
    first = [str(table.columns["id"][row]) for row in table.ranked("mislabeled")[:8]]
    app = opened(run="simclr-digits", split="test", cut="0.02", every="yes")
    before, heads = {item.id: item.wrong for item in desk.bench.items}, drawn[-1].heads
    desk.events(*(("keep", i, "") for i in first))
    desk.report["at"] = first[-1]
    app.run()
    assert desk.item.id == first[-1]  # still on the list
    assert {item.id: item.wrong for item in desk.bench.items} == before
    assert drawn[-1].heads == heads
    next(b for b in app.button if b.label.startswith("Drop ") and b.label != "Drop or relabel many").click().run()
    assert drawn[-1].heads == heads
    assert "Random checks" not in text_of(app)
    assert not app.exception


def test_decisions_from_before_a_cleaned_run_say_nothing_of_its_other_rows() -> None:
    """The wrong ones among them were left out, so those that stay are all right."""
    columns = {"id": np.array(["a", "b", "c"]), "mislabeled": np.full(3, 0.2)}
    other = runs.create("other", {})
    cleaned = runs.create("cleaned", {"exclude": "left_out.txt"})
    trained = datetime.fromisoformat(str(cleaned.manifest["created"])).timestamp()
    marked = {"a": {"what": "keep", "time": trained - 1}, "b": {"what": "keep", "time": trained + 1}}
    for run, settled in ((cleaned, [True, False, False]), (other, [False] * 3), (None, [False] * 3)):
        found = label_audit.audit_table(SampleTable(columns, (), "sup_con"), marked, run)
        assert found is not None
        assert np.isnan(found.p).tolist() == settled
        assert np.isfinite(found.wrong).tolist() == [not settled[0], True, False]
