"""The interface in the session's language: catalogs complete, messages translated where they are shown."""

import ast
import json
import pickle
import string
import warnings
from pathlib import Path

import pytest
from streamlit.elements import spinner
from streamlit.testing.v1 import AppTest

from contrastive_core.base import json_files
from contrastive_core.base.messages import Message, join, message
from contrastive_core.base.storage import ROOT
from contrastive_lab import locale
from contrastive_lab.components.shared.mount import localized
from contrastive_lab.locale import _
from contrastive_lab.locale.__main__ import SOURCES, extract, is_translated, read


@pytest.fixture
def _chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locale, "language", lambda: "zh")


def placeholders(text: str) -> set[str]:
    return {name for _text, name, _spec, _conversion in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("domain", SOURCES)
def test_the_catalog_holds_every_message(domain: str) -> None:
    """And none that is gone: `python -m contrastive_lab.locale` brings it up to date. Who contributes need not write
    Chinese: an empty translation is a warning here, and an error in tests/release/test_translations.py."""
    marked = {m.id for m in extract(domain) if m.id}
    catalog = {m.id: m for m in read(domain) if m.id}
    assert marked == set(catalog)
    empty = [str(source) for source, entry in catalog.items() if not is_translated(entry)]
    if empty:
        warnings.warn(f"without a translation: {empty}", stacklevel=1)


@pytest.mark.parametrize("domain", SOURCES)
def test_a_translation_has_the_placeholders_of_its_source(domain: str) -> None:
    for entry in read(domain):
        sources = entry.id if isinstance(entry.id, tuple) else (entry.id,)
        targets = entry.string if isinstance(entry.string, tuple) else (entry.string,)
        for target in targets:
            if entry.id and target:
                assert placeholders(target) == placeholders(sources[-1]), entry.id


def test_no_mark_stands_in_an_f_string() -> None:
    """Extraction reads f-strings in some versions of Python only."""
    marks = {"_", "N_", "message", "ngettext"}
    for pattern in SOURCES["contrastive_lab"][1]:
        for path in ROOT.glob(pattern):
            strings = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.JoinedStr))
            calls = [node for one in strings for node in ast.walk(one) if isinstance(node, ast.Call)]
            marked = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id in marks]
            assert not [c for c in marked if c.args and isinstance(c.args[0], ast.Constant)], path


def test_a_message_is_its_english_sentence() -> None:
    said = message("there is no list {shown}", shown="a.csv")
    assert said == "there is no list a.csv"
    assert str(ValueError(said)) == said
    copy = pickle.loads(pickle.dumps(said))
    assert (copy, copy.template, copy.values) == (said, said.template, said.values)


def test_a_message_keeps_its_template_in_a_file(tmp_path: Path) -> None:
    reason = message("{name} is waiting for {at_work}", name="a", at_work=message("there is no list {shown}", shown=1))
    json_files.write_json(tmp_path / "a.json", {"reason": reason, "plain": "text"})
    json_files.append_lines(tmp_path / "a.jsonl", [{"reason": reason}])
    held = json_files.read_object(tmp_path / "a.json")
    assert held == {"reason": reason, "plain": "text"}
    for copy in (held["reason"], json_files.read_lines(tmp_path / "a.jsonl")[0]["reason"]):
        assert (copy.template, copy.values["at_work"].template) == (reason.template, "there is no list {shown}")


@pytest.mark.parametrize(
    "template", ["{a.__class__}", "{a[0]}", "{a:99999999}", "{a!r}", "{0}", "{b}", "{", 3, None, ["{a}"]]
)
def test_a_template_of_a_foreign_file_is_not_evaluated(tmp_path: Path, template: object) -> None:
    foreign = {"message": template, "values": {"a": "x"}}
    (tmp_path / "a.json").write_text(json.dumps({"note": foreign}))
    assert json_files.read_object(tmp_path / "a.json") == {"note": foreign}


@pytest.mark.usefixtures("_chinese")
def test_a_message_is_translated_with_its_values() -> None:
    reason = message("there is no list {shown}", shown="a.csv")
    chinese = locale.text(reason)
    assert "a.csv" in chinese
    assert chinese != reason
    assert locale.text(ValueError(reason)) == chinese
    assert locale.text(join(" ", [reason, "my run"])) == f"{chinese} my run"
    assert _("The weights were not opened. {error}").format(error=ValueError(reason)).endswith(chinese)
    assert isinstance("1. " + reason, Message)
    assert locale.text("1. " + reason) == f"1. {chinese}"


def test_english_is_left_alone() -> None:
    assert _("Home") == "Home"
    assert locale.language() == "en"  # no page is drawn
    assert localized({"title": "Home"}) == {"title": "Home"}


@pytest.mark.usefixtures("_chinese")
def test_meta_data_of_a_browser_part() -> None:
    """Texts under their keys are translated, names stay, and the messages of the parts come along."""
    meta = localized(
        {"title": "Home", "names": ["Home"], "items": [{"note": message("there is no list {shown}", shown=1)}]}
    )
    assert meta["title"] == _("Home") != "Home"
    assert meta["names"] == ["Home"]
    assert "there" not in meta["items"][0]["note"]
    assert meta["language"] == "zh"
    assert meta["messages"]["whole map"] == "查看全图"


def _slow_page() -> None:
    import time

    import streamlit as st

    from contrastive_lab.locale import SESSION, Deferred

    @st.cache_data(show_spinner=Deferred("Reading images…"))
    def slow() -> int:
        time.sleep(0.5)
        return 1

    st.session_state[SESSION] = "zh"
    slow()


def test_a_spinner_is_translated_where_it_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    clean = spinner.clean_text
    monkeypatch.setattr(spinner, "clean_text", lambda text: said.append(clean(text)) or said[-1])
    AppTest.from_function(_slow_page, default_timeout=90).run()
    assert said == [_("Reading images…") if locale.language() == "zh" else "正在读取图像…"]


# --- the session ------------------------------------------------------------------------------


def _page() -> None:
    import streamlit as st

    from contrastive_lab import query_params, state
    from contrastive_lab.locale import language

    query_params.arrive("words")
    state.take_language()
    state.pick_language()
    form = query_params.one_of(st.selectbox, "Loss", ("Home", "Train", "Other"), name="form")
    st.text(f"{language()} {form}")
    query_params.write()


def test_language_in_the_address() -> None:
    app = AppTest.from_function(_page, default_timeout=90)
    app.query_params["lang"] = "zh"
    app.run()
    assert app.selectbox[0].label == "损失"
    assert app.selectbox[0].options == ["首页", "训练", "Other"]
    assert app.text[0].value == "zh Home"
    for shown, form in (("训练", "Train"), ("Other", "Other"), ("首页", "Home")):
        app.selectbox[0].select(shown).run()
        assert app.text[0].value == f"zh {form}"
    assert app.query_params["lang"] == "zh"


def test_switch_of_the_language() -> None:
    """There and back three times; the choice of a selectbox stays."""
    app = AppTest.from_function(_page, default_timeout=90).run()
    app.selectbox[0].select("Train").run()
    english = app.selectbox[0].key
    for _turn in range(3):
        app.button_group[0].set_value("zh").run()
        assert app.text[0].value == "zh Train"
        assert app.selectbox[0].options[1] == "训练"
        assert app.selectbox[0].key != english  # else the browser goes on to show the old text
        assert app.query_params["lang"] == "zh"
        app.button_group[0].set_value("en").run()
        assert app.text[0].value == "en Train"
        assert "lang" not in app.query_params
