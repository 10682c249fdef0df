"""Compare: the verdict and its dumbbells come before the references, a tick needs a size, views and places of A and B
are in the address."""

from dataclasses import replace

import numpy as np
import pytest
from opened_page import opened
from streamlit.testing.v1 import AppTest

from contrastive_core import runs
from contrastive_core.base.storage import ROOT
from contrastive_core.compare.adapter import adapter_request
from contrastive_core.compare.comparison import Comparison, Entry, compare, comparison_request
from contrastive_core.compare.differences import Differences, differences_request
from contrastive_core.engine import answers
from contrastive_core.samples import annotations as sample_annotations
from contrastive_core.samples.run_samples import make_table
from contrastive_core.samples.sample_table import request_of
from contrastive_core.spaces import loaded_vectors
from contrastive_core.spaces.embedding_set import EmbeddingSet
from contrastive_core.spaces.space import Space
from contrastive_lab import cache, state
from contrastive_lab.compare import overview, score_tables, space_picker, verdict
from contrastive_lab.compare.disagreements import ComparedSamples
from contrastive_lab.compare.verdict import Dumbbell, order_may_change, undecided
from contrastive_lab.components.scatter import ScatterData, side_by_side
from contrastive_lab.home import OFFERED

PAIR = ("simclr-digits", "sup_con-digits")


def compared(noise: float, moved: float = 0.0) -> Comparison:
    """Two spaces of the same samples, the second blurred by `noise`, or its rows only a little `moved`."""
    labels = np.arange(360) % 4
    corners = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]], np.float32)[labels]
    entries = []
    for name in PAIR:
        rng = np.random.default_rng(0)
        rows = (corners + 0.5 * rng.normal(size=(360, 3))).astype(np.float32)
        if name == PAIR[1]:
            rows = rows + noise * rng.normal(size=rows.shape) + moved
        test, train = (
            EmbeddingSet(rows[part].astype(np.float32), labels[part]) for part in (slice(160), slice(160, 360))
        )
        entries.append(Entry(name, train, test))
    return compare(entries, every_score=True)


def page_of(found: Comparison, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    """Compare on the pair, with this answer for the first of its samples."""
    rows = Space.of_run(runs.load(PAIR[0]), "test", "h").rows()
    assert rows is not None
    found = replace(found, ids=rows.ids[: len(found.ids)])
    monkeypatch.setattr(verdict, "known", lambda *a, **k: found)
    monkeypatch.setattr(verdict, "_warn", lambda *a: None)
    app = opened("compare", monkeypatch, **{"runs": ",".join(PAIR), **query})
    assert not app.exception
    return app


def test_the_verdict_waits_for_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "scores", lambda run: None)
    app = page_of(compared(2.0), monkeypatch)
    assert app.header[0].value.startswith("● wins by ")
    assert not any("Preparing" in str(m.value) for m in [*app.markdown, *app.warning])
    (help,) = [c.help for c in app.caption if c.help]
    assert "simclr\\-digits is better than sup\\_con\\-digits by" in help
    assert "Judged on 160 samples" in help
    assert "Trained with labels: sup" in help
    for view in ("Disagreements", "Similarity", "Tables"):
        app.button_group(key="compare-view").set_value(view).run()
        assert not app.exception


def test_similarity_stands_beside_what_chance_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("simclr-digits", "sup_con-digits", "moco_v2-digits", "metric-digits")
    app = opened("compare", monkeypatch, runs=",".join(names[:2]), view="Similarity")
    assert not any("calibrated **" in c.value for c in app.caption)
    for count in (2, 4):
        spaces = [Space.of_run(runs.load(name), "test", "h") for name in names[:count]]
        found = answers.make("calibration", {"spaces": [space.values for space in spaces]})
        answers.make("comparison", comparison_request(spaces, every_score=False))
        app = opened("compare", monkeypatch, runs=",".join(names[:count]), view="Similarity")
        assert not app.exception
        assert any("200 random orders" in c.value for c in app.caption)
        if count == 2:
            limit, value = (found.arrays[f"{name}:cka"][0, 1] for name in ("chance", "calibrated"))
            said = f"Chance {limit:.2f} · calibrated **{value:.2f}** · p 0.005"
            assert said in [c.value for c in app.caption]
        else:
            assert any("Every pair of spaces is more similar than by chance" in c.value for c in app.caption)


def test_a_and_b_change_places_and_stay_in_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_of(compared(2.0), monkeypatch)
    assert [app.selectbox(key=f"compare-{which}").value for which in "AB"] == [*PAIR]
    next(b for b in app.button if b.label == "Swap A and B").click().run()
    assert app.query_params["runs"] == ",".join(PAIR[::-1])
    app.selectbox(key="compare-A").set_value(PAIR[0]).run()  # it is compared already: the two change places
    assert app.query_params["runs"] == ",".join(PAIR)
    before = app.multiselect[0].proto.id
    app.selectbox(key="compare-B").set_value("cpc-digits").run()
    assert app.query_params["runs"] == f"{PAIR[0]},cpc-digits"
    assert app.multiselect[0].proto.id != before  # closed, the former one would send back what it held
    monkeypatch.setattr(verdict, "known", lambda *a, **k: None)
    app = opened("compare", monkeypatch, runs=f"cpc-digits,{','.join(PAIR)}", a=PAIR[0], b=PAIR[1])
    assert [app.selectbox(key=f"compare-{which}").value for which in "AB"] == [*PAIR]


def test_dumbbells_stand_on_one_axis_and_are_thick_where_the_difference_is_significant() -> None:
    rows = [
        Dumbbell("kNN accuracy", (0.8, 0.7), 0.1, (0.05, 0.15), {"raw": 0.42, "random": 0.4}, p=0.01),
        Dumbbell("<cross>", (0.5, 0.6), -0.1, (-0.25, -0.05), p=0.1),
        Dumbbell("unknown", (None, 0.6)),
    ]
    text = verdict.dumbbells(rows[:1], rows[1:], ["a", "b"])
    assert [row.is_significant for row in rows] == [True, False, False]
    assert text.count(" significant") == 2  # the row, and the explanation
    assert "left:5.0%" in text  # of an axis from 40 to 80 %
    assert text.count('"tick raw"') == text.count('"tick random"') == 2  # on the axis, and with its name below
    assert text.count("raw pixels") == 3
    assert "the axis begins at 40 %, not at 0" in text
    assert "&lt;cross&gt;: a 50.0 %, b 60.0 %, difference -10.0 points (95 %: -25.0 to -5.0)" in text
    assert "−10.0" in text
    assert text.count('class="dot') == 5


def test_the_axis_spans_the_values_and_tells_where_it_begins() -> None:
    ends = {(0.0, 0.9): (0, 100), (0.91, 0.983): (90, 100), (0.86, 1.0): (85, 100), (1.0, 1.0): (98, 100), (): (0, 100)}
    for shares, (low, high) in ends.items():
        axis = verdict.axis_of([Dumbbell("kNN accuracy", shares)])
        assert (axis.low, axis.high) == (low, high)
        assert all(0 <= axis.place(share) <= 100 for share in shares)
        text = verdict.dumbbells([Dumbbell("kNN accuracy", shares)], [], ["a", "b"][: len(shares)])
        assert ("not at 0" in text) == (low > 0)


def test_the_headline_names_the_winner_by_its_shape_or_says_why_there_is_none() -> None:
    head, below = verdict.headline(compared(2.0), "knn")
    assert head.startswith("● wins by ")
    assert "95 % interval over samples, not seeds" in below
    head, below = verdict.headline(compared(0.0), "knn")
    assert head == "No significant difference"
    assert below.startswith("● − ○: 0.0 points, ")
    found = compared(0.0)
    differences = [replace(d, value=-0.003, interval=(-0.02, 0.014)) for d in found.differences]
    _head, below = verdict.headline(replace(found, differences=differences), "knn")
    assert below.startswith("● − ○: −0.3 points, −2.0 to 1.4 ")  # with the sign of the row below
    differences = [replace(d, value=0.07, interval=(0.01, 0.13), p_corrected=0.1) for d in found.differences]
    head, below = verdict.headline(replace(found, differences=differences), "knn")
    assert head == "No significant difference"
    assert below.endswith(" p = 0.1, corrected for 2 tests.")
    head, below = verdict.headline(replace(compared(0.0), accuracy={}), "")
    assert head == "They share 100 % of neighbors"
    assert "Without labels" in below


def test_a_file_of_other_samples_has_no_map_in_common_and_files_have_no_head(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = EmbeddingSet(np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32))
    files = [loaded_vectors.PREFIX + loaded_vectors.save_vectors(rows, name) for name in ("a.npy", "b.npy")]
    app = opened("compare", monkeypatch, runs=f"{files[0]},{PAIR[0]}")
    assert not app.exception
    assert any(h.value == "No samples in common" for h in app.header)
    assert any(group.label == "Features" for group in app.button_group)
    app = opened("compare", monkeypatch, runs=",".join(files))
    assert not app.exception
    assert not any(group.label == "Features" for group in app.button_group)


def test_a_tick_needs_a_difference_that_matters_and_says_who_is_better() -> None:
    """A space that is moved by a hair differs in alignment with a tiny p: that is no tick."""
    tiny, large = compared(0.0, moved=0.001), compared(2.0)
    for found, result in ((tiny, "too small"), (large, "✓ A better")):
        (test,) = (t for t in found.tests if t.metric == "purity")
        row = score_tables._test(replace(test, p_corrected=1e-52), True, 0.01)
        assert row["result"] == result
        assert row["p, corrected"] == "< 0.0001"
    row = score_tables._test(replace(test, p_corrected=0.0), True, 0.9)
    assert row["result"] == "too small"
    assert row["p, corrected"] != "0"


def test_a_file_of_the_user_that_is_no_method_leaves_the_training_labels_unknown(monkeypatch) -> None:
    def unreadable() -> dict[str, object]:
        raise RuntimeError("the catalog cannot be created")

    assert score_tables.needs_labels(runs.load(PAIR[1]))
    monkeypatch.setattr(cache, "catalog", unreadable)
    assert not score_tables.needs_labels(runs.load(PAIR[1]))


def test_samples_show_their_label_text_and_both_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(2.0)
    ids, texts = found.ids, np.array([f"text {q}" for q in range(len(found.ids))])
    assert found.labels is not None
    rows = EmbeddingSet(np.eye(len(ids), dtype=np.float32), found.labels, ids=ids, columns={"text": texts})
    monkeypatch.setattr(cache, "embedding", lambda space: rows)
    samples = ComparedSamples([Space("a", "")], found, "knn")
    (row,) = samples.table(np.array([3]))
    predicted = found.predicted["knn"][:, 3]
    assert row == {
        "class": str(found.labels[3]),
        "A says": str(predicted[0]),
        "B says": str(predicted[1]),
        "text": "text 3",
        "id": ids[3],
    }


def test_disagreement_opens_where_samples_are() -> None:
    found = compared(2.0)
    samples = ComparedSamples([Space("a", "")], found, "knn")
    one, two = found.correct["knn"]
    counts = [int((one & ~two).sum()), int((two & ~one).sum()), int((~one & ~two).sum())]
    assert samples.one_right == sum(counts[:2])
    assert [len(rows) for rows in samples.ways.values()] == counts


def test_colors_say_who_is_right() -> None:
    samples = ComparedSamples([Space("a", "")], compared(2.0), "knn")
    codes, names, colors = samples.outcomes([*samples.comparison.ids, "elsewhere"])
    assert names == ("only ● right", "only ○ right", "both wrong", "both right", "not judged")
    assert len(colors) == len(names)
    first, second = samples.comparison.correct["knn"]
    expected = np.where(first & second, 3, np.where(first, 0, np.where(second, 1, 2)))
    assert codes.tolist() == [*expected.tolist(), 4]


def test_the_example_of_questions_opens_with_its_judgments_and_asks_a_link_from_elsewhere_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = opened("compare", monkeypatch, example="questions")  # from the front page, which `opened` shows first
    assert not app.exception
    assert [about["name"] for about in loaded_vectors.loaded().values()] == ["ngrams.npz", "trigrams.npz"]
    judged = app.session_state[space_picker.QRELS]
    assert judged.name == "qrels.tsv"
    keys = [*loaded_vectors.loaded()]
    for key in keys:
        loaded_vectors.forget(key)
    del app.session_state[OFFERED]
    app.query_params["example"] = "questions"
    app.switch_page("pages/methods.py").run()
    app.query_params["example"] = "questions"
    app.switch_page("pages/compare.py").run()
    assert not loaded_vectors.loaded()
    next(b for b in app.button if b.label.startswith("Make the example")).click().run()
    assert not app.exception
    assert {*loaded_vectors.loaded()} == {*keys}


def test_the_map_says_what_it_keeps_once_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 8)).astype(np.float32)
    turned = (x @ np.linalg.qr(rng.normal(size=(8, 8)))[0]).astype(np.float32)
    keys = [loaded_vectors.save_vectors(EmbeddingSet(rows), name) for rows, name in ((x, "old"), (turned, "new"))]
    names = [loaded_vectors.PREFIX + key for key in keys]
    spaces = [Space.of_name(name, "test", "h") for name in names]
    answers.make("comparison", comparison_request(spaces, every_score=False))
    answers.make("calibration", {"spaces": [space.values for space in spaces]})
    app = opened("compare", monkeypatch, runs=",".join(names), view="Similarity")
    assert not app.exception
    assert not any("best answers" in m.value for m in app.markdown)
    answers.make("adapter", adapter_request(*spaces))
    app.toggle(key="compare-adapter").set_value(True).run()
    assert not app.exception
    assert app.query_params["adapter"] == "yes"
    (said,) = [m.value for m in app.markdown if "best answers" in m.value]
    assert said.startswith(("The map keeps **9", "The map keeps **100"))
    table = next(d.value for d in app.dataframe if "at least, %" in d.value)
    assert len(table) == 4
    assert "orthogonal Procrustes" in table["map"].iloc[:3].tolist()
    assert (table["kept, %"].iloc[:3] >= table["at least, %"].iloc[:3]).all()


def test_maps_side_by_side_stand_upright_in_cells_of_their_shape() -> None:
    wide = np.array([[0, 0], [4, 0], [4, 1], [0, 1]], np.float32)
    high = overview.upright(wide, 2)
    assert np.ptp(high, axis=0).tolist() == [1, 4]
    assert np.allclose(np.linalg.norm(high[0] - high[2]), np.linalg.norm(wide[0] - wide[2]))
    assert overview.upright(high, 3) is high
    assert overview.upright(wide, 4) is wide  # in two lines
    panels = side_by_side(ScatterData(high, "abcd", ""), [high, high], ["A", "B"]).panels
    assert panels is not None
    x0, x1, y0, y1 = panels.box
    assert 4 < y1 - y0 < 4.5
    assert 2 < x1 - x0 < 2.5


RUNS = ("simclr-shapes", "sup_con-shapes")


def test_the_groups_that_differ_are_named_and_can_be_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = [Space.of_name(name) for name in RUNS]
    found = Differences.of(answers.make("differences", differences_request(spaces), device="cpu").meta)
    assert found.groups
    answers.make("comparison", comparison_request(spaces), device="cpu")
    app = opened("compare", monkeypatch, runs=",".join(RUNS), view="Disagreements", disagree="Groups")
    assert not app.exception
    shown = [part.value.replace("\\", "") for part in app.markdown]
    for group in found.groups:
        assert f"**{group.sentence(RUNS)}**" in shown
    assert f"**{len(found.groups)} groups** lie together in one space and apart in the other." in shown
    said = [part.value.replace("\\", "") for part in app.caption]
    assert str(found.notes[0]) in said
    first = found.groups[0]
    button = next(one for one in app.button if one.label == f"Select all {len(first.rows)} on the maps")
    button.click().run()
    assert sorted(app.session_state["selection"][state.data_of(spaces[0])]) == sorted(first.rows)


def test_who_leads_by_how_much_and_what_may_fall() -> None:
    a = np.array([1, 1, 1, 0, 0, 1.0])
    b = np.array([1, 1, 0, 0, 0, 0.0])

    def may(*doubtful: int) -> bool:
        return order_may_change(np.stack([a, b]), np.isin(np.arange(6), doubtful))

    assert may(2)  # the leader alone is right: two may be lost of a lead of two
    assert not may(3)  # both are wrong: one
    assert may(3, 4)
    assert not may(0, 1)  # both are right, and so say the same
    assert not order_may_change(np.stack([a, a]), np.ones(6, bool))  # nobody leads


def test_what_was_decided_is_no_suspect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config = {**runs.load("simclr-digits").config, "dataset": "digits_mislabeled"}
    run = runs.create("planted", config)
    run.write("weights.safetensors", runs.load("simclr-digits").weights.read_bytes())
    make_table(request_of(run.name, "test"))
    request = request_of("planted", "test", "nt_xent")
    before = undecided(request)
    assert 3 <= len(before) <= 6
    sample_annotations.add(request.decisions(), before[0], "drop")
    assert undecided(request)[: len(before) - 1] == before[1:]  # the list opens at the first of them
