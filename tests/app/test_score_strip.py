"""The strip of scores: where marks stand on each scale, what is said of them, what is escaped. References as marks and
columns beside a run's scores, in the popover, under the lists of Samples."""

import re

import pytest
from opened_page import opened

from contrastive_core.base.score import Score
from contrastive_core.compare import evaluation
from contrastive_lab import score_strip
from contrastive_lab.score_strip import markup


def knn(value: float | None, **more: object) -> dict[str, Score]:
    return {"knn": Score("kNN accuracy", "how <it> is read", value, unit="share", **more)}  # type: ignore[arg-type]


def places(html: str) -> dict[str, float]:
    """Where each mark of the first scale stands, in per cent."""
    marks = re.findall(r'<i class="(\w+)(?: off)?" style="left:([\d.]+)%', html)
    return {kind: float(left) for kind, left in marks}


def test_marks_stand_where_the_figures_are() -> None:
    scores = {"own": knn(0.9, interval=(0.85, 0.95)), "raw": knn(0.4), "random": knn(0.25)}
    html = markup(scores)
    assert places(html) == {"own": 90.0, "interval": 85.0, "raw": 40.0, "random": 25.0}
    assert "width:10.00%" in html
    for said in ("95 % interval over samples, not seeds: 85.0 to 95.0", "raw pixels: 40.0", "untrained encoder: 25.0"):
        assert html.count(said) == 2  # for those who see the scale, and those who do not
    assert "how &lt;it&gt; is read" in html


def test_each_scale_covers_the_full_range() -> None:
    def one(name: str, value: float, width: float | None = None) -> Score:
        return Score(name, "", value, extras={"width": width} if width else {})

    own = knn(0.5) | {"alignment": one("Alignment", 1.0), "uniformity": one("Uniformity", -3.0)}
    own["rankme"] = one("RankMe", 33, 129)
    html = markup({"own": own, "raw": {"rankme": one("RankMe", 400, 3072)}})
    assert re.findall(r'<i class="own" style="left:([\d.]+)%', html) == ["50.00", "25.00", "25.00", "25.00"]
    assert '<i class="raw off" style="left:100.00%">' in html  # beyond this embedding's width
    assert "RankMe" in html


def test_without_labels_other_scores_are_shown_and_without_references_no_key() -> None:
    own = {"knn": Score("kNN accuracy", missing="no labels"), "uniformity": Score("U", "", -2.0)}
    html = markup({"own": own})
    assert "kNN" not in html
    assert places(html) == {"own": 50.0}
    assert 'class="key"' not in html


REFERENCE = "sup_con-digits"


def test_it_is_a_mark_of_the_strip() -> None:
    own = Score("kNN accuracy", "", 0.9, unit="share")
    html = score_strip.markup(
        {"own": {"knn": own}, "reference:<x>": {"knn": Score("kNN accuracy", "", 0.5, unit="share")}}
    )
    assert '<i class="reference" style="left:50.00%">' in html
    assert "&lt;x&gt;, reference: 50.0" in html
    assert "<x>" not in html


def test_explore_shows_it_and_names_and_forgets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation.add_reference(REFERENCE)
    app = opened("explore", monkeypatch, run="simclr-digits", more="All scores")
    assert not app.exception
    assert f"{REFERENCE}, reference" in "".join(h.proto.body for h in app.get("html"))
    assert f"{REFERENCE}, reference" in list(app.dataframe[0].value.columns)
    box = next(m for m in app.multiselect if m.label == "References")
    box.set_value([REFERENCE, "moco_v2-digits"]).run()
    assert evaluation.reference_names() == [REFERENCE, "moco_v2-digits"]
    next(m for m in app.multiselect if m.label == "References").set_value([]).run()
    assert not app.exception
    assert evaluation.reference_names() == []
    assert f"{REFERENCE}, reference" not in "".join(h.proto.body for h in app.get("html"))
