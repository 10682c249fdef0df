"""The interface in another language: texts found in the source, translated where they are shown."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.testing.v1 import AppTest

from contrastive_lab import words
from contrastive_lab.words import __main__ as command
from contrastive_lab.words.boundary import translate_message
from contrastive_lab.words.extract import extract, not_words
from contrastive_lab.words.javascript import literals
from contrastive_lab.words.translate import Catalog, holes_of

CATALOG = Catalog({
    "{0} of {1} negatives": "{1} 个负样本中的 {0} 个",
    "{0} of {1} negatives in the queue": "队列 {1} 个负样本中的 {0} 个",
    "Loss of the batch": "批次损失",
    "Train": "训练",
    "Trained with {0}": "使用 {0} 训练",
    "images": "图像",
    "{0} of {1}": "{1} 中的 {0}",
    "{0} image{1}": "{0} 张图像",
    "The run is gone": "该运行已不存在",
    "Run “{0}” failed: {1}": "运行“{0}”失败：{1}",
    "kNN accuracy": "kNN 准确率",
    "One sentence. And {0} more.": "一句话，还有 {0} 句。",
    "Lesson {n} of {of}": "第 {n} 课，共 {of} 课",
    "It gets {0} of the push": "它承受 {0} 的推力",
    "nearly all": "几乎全部",
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Loss of the batch", "批次损失"),
        ("  Loss of the batch\n", "  批次损失\n"),
        ("loss of the batch", "批次损失"),  # inside another sentence
        ("Loss of the batch.", "批次损失。"),
        ("3 of 12 negatives", "12 个负样本中的 3 个"),  # holes in another order
        ("3 of 12 negatives in the queue", "队列 12 个负样本中的 3 个"),  # two templates match
        ("1 image", "1 张图像"),
        ("5 images", "5 张图像"),
        ("2 of 3", "3 中的 2"),
        ("Lesson 2 of 6", "第 2 课，共 6 课"),
        ("Lesson 2 of 6 · Train", "第 2 课，共 6 课 · 训练"),
        ("**Loss of the batch**", "**批次损失**"),
        ("- kNN accuracy\n- Loss of the batch", "- kNN 准确率\n- 批次损失"),
        ("| Loss of the batch | 3 |", "| 批次损失 | 3 |"),
        ("One sentence. And 3 more.", "一句话，还有 3 句。"),
        ("Loss of the batch. One sentence. And 3 more.", "批次损失。一句话，还有 3 句。"),
        ("kNN accuracy; loss of the batch", "kNN 准确率；批次损失"),
        ("Run “x” failed: the run is gone.", "运行“x”失败：该运行已不存在。"),  # nested
        ("Run “x” failed: 3 of 12 negatives", "运行“x”失败：12 个负样本中的 3 个"),
        ("It gets nearly all of the push", "它承受几乎全部的推力"),  # no space at a seam
        ("It gets 3 % of the push", "它承受 3 % 的推力"),
        ("0.25 ± 3", "0.25 ± 3"),
        (
            "At τ = 1, run “x” failed: loss of the batch",
            "At τ = 1，运行“x”失败：批次损失",
        ),  # what leads to it
        ("views of one image", "views of one image"),  # {0} image{1} of what is no number
        ("Run “x” failed: **5 images**", "运行“x”失败：**5 张图像**"),
        ("nothing that is known", "nothing that is known"),
    ],
)
def test_text_in_another_language(text: str, said: str) -> None:
    assert CATALOG.translate(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Run “Train” failed: the run is gone", "运行“Train”失败：该运行已不存在"),
        ("Run “images” failed: the run is gone", "运行“images”失败：该运行已不存在"),
        ("Trained with Train", "使用 Train 训练"),
        ("my run of digits", "my run of digits"),
        ("Trained with my run of digits", "使用 my run of digits 训练"),
        ("Trained with a, b; c: d", "使用 a, b; c: d 训练"),
        ("Trained with 猫, 狗", "使用 猫, 狗 训练"),
    ],
)
def test_names_of_users_stay(text: str, said: str) -> None:
    assert CATALOG.translate(text) == said


def test_english_is_left_alone() -> None:
    assert words.translate("Loss of the batch", "en") == "Loss of the batch"
    assert words.language() == "en"  # no page is drawn


def test_templates_of_python() -> None:
    texts = {one.text for one in extract()}
    assert {"Home", "Loss Lab", "waiting: {0} runs ahead"} <= texts
    assert not any("contrastive_lab/" in text for text in texts)


def test_literals_of_javascript() -> None:
    source = (
        "const a = `x ${b ? `in ${c}` : 'no'} y` + \" z ${d}\"; // 'comment'\nf(/'/.test(q), 'e');"
    )
    assert [(text, line) for text, line, _ in literals(source)] == [
        ("x {0} y z ${d}", 1),
        ("in {0}", 1),
        ("no", 1),
        ("e", 2),
    ]


def test_every_sentence_has_a_translation() -> None:
    """And no entry is of a sentence that is gone. `python -m contrastive_lab.words` mends both."""
    found, entries = command.references(), _entries()
    assert not [text for text in found if not entries.get(text)]
    assert not [text for text in entries if text not in found]


def test_what_is_left_out_is_in_the_source() -> None:
    assert not sorted(not_words() - {one.text for one in extract(with_all=True)})


def test_a_space_stands_beside_a_unit() -> None:
    said = "About 40 s: an estimate, from 6.6 s an epoch of a-b on this machine."
    assert words.translate(said, "zh") == "约 40 s：根据本机上 a-b 每轮 6.6 s 估计。"


def test_holes_of_translations() -> None:
    """A translation has no holes that its sentence lacks."""
    for source, target in _entries().items():
        assert not command.fault_of(source, target), source
    assert command.fault_of("{0} of {1}", "{1} 中的 {2}")
    assert command.fault_of("**A.** B", "**甲。**乙")
    assert holes_of("{0} of {n}") == {"0", "n"}


def _entries() -> dict[str, str]:
    return {entry.msgid: entry.msgstr for entry in words._entries("zh")}


# --- messages to the browser ------------------------------------------------------------------


def test_texts_of_a_message() -> None:
    message = ForwardMsg()
    message.delta.new_element.button.label = "Loss of the batch"
    message.delta.new_element.button.id = "Loss of the batch"
    translate_message(message, CATALOG.translate)
    assert message.delta.new_element.button.label == "批次损失"
    assert message.delta.new_element.button.id == "Loss of the batch"


def test_table_in_a_message() -> None:
    """Heads get a label and cells are translated, but not those that hold names."""
    table = pa.table({"Run": ["Train"], "kNN accuracy": ["3 of 12 negatives"], "n": [1]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    message = ForwardMsg()
    message.delta.new_element.dataframe.arrow_data.data = sink.getvalue().to_pybytes()
    translate_message(message, CATALOG.translate)
    frame = message.delta.new_element.dataframe
    shown = pa.ipc.open_stream(frame.arrow_data.data).read_all().to_pydict()
    assert shown == {"Run": ["Train"], "kNN accuracy": ["12 个负样本中的 3 个"], "n": [1]}
    assert json.loads(frame.columns) == {"kNN accuracy": {"label": "kNN 准确率"}}


def test_own_html_in_a_message() -> None:
    message = ForwardMsg()
    message.delta.new_element.html.body = (
        '<style>b > i { color: images; }</style><b title="5 images">images</b> <i>x</i>'
    )
    translate_message(message, CATALOG.translate)
    assert message.delta.new_element.html.body == (
        '<style>b > i { color: images; }</style><b title="5 张图像">图像</b> <i>x</i>'
    )


def test_figure_in_a_message() -> None:
    message = ForwardMsg()
    spec = {"data": [{"name": "Train", "x": ["images"]}], "layout": {"title": {"text": "images"}}}
    message.delta.new_element.plotly_chart.spec = json.dumps(spec)
    translate_message(message, CATALOG.translate)
    shown = json.loads(message.delta.new_element.plotly_chart.spec)
    assert shown["layout"]["title"]["text"] == "图像"
    assert shown["data"][0]["x"] == ["images"]


# --- the session ------------------------------------------------------------------------------


def _page() -> None:
    import streamlit as st

    from contrastive_lab import query_params
    from contrastive_lab.words import boundary, language, switch

    boundary.install()
    query_params.arrive("words")
    switch.arrive()
    switch.draw()
    form = query_params.one_of(st.selectbox, "Form", ("Home", "Train", "Other"), name="form")
    st.text(f"{language()} {form}")
    query_params.write()


@pytest.fixture
def _catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    chinese = Catalog({"Home": "首页", "Train": "训练", "Form": "形式"})
    monkeypatch.setattr(words, "catalog", lambda language: chinese)


@pytest.mark.usefixtures("_catalog")
def test_language_in_the_address() -> None:
    app = AppTest.from_function(_page)
    app.query_params["lang"] = "zh"
    app.run()
    assert app.selectbox[0].label == "形式"
    assert app.selectbox[0].options == ["首页", "训练", "Other"]
    assert app.text[0].value == "zh Home"
    for shown, form in (("训练", "Train"), ("Other", "Other"), ("首页", "Home")):
        app.selectbox[0].select(shown).run()
        assert app.text[0].value == f"zh {form}"
    assert app.query_params["lang"] == "zh"


@pytest.mark.usefixtures("_catalog")
def test_switch_of_the_language() -> None:
    """There and back three times; the choice of a selectbox stays."""
    app = AppTest.from_function(_page).run()
    app.selectbox[0].select("Train").run()
    english = app.selectbox[0].key
    for _ in range(3):
        app.button_group[0].set_value("zh").run()
        assert app.text[0].value == "zh Train"
        assert app.selectbox[0].options[1] == "训练"
        assert app.selectbox[0].key != english  # else the browser goes on to show the old text
        assert app.query_params["lang"] == "zh"
        app.button_group[0].set_value("en").run()
        assert app.text[0].value == "en Train"
        assert "lang" not in app.query_params
