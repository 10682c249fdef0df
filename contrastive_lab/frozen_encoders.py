"""The user's frozen encoders on pages: their scores beside a run's, and the popover in which she names them."""

import contextlib

import streamlit as st

from contrastive_core.engine import client, questions
from contrastive_core.engine.client import Question
from contrastive_core.records import frozen
from contrastive_core.records.frozen import FrozenEncoder
from contrastive_core.records.run import Run
from contrastive_core.records.score import Scores, scores_from_json
from contrastive_lab import cache, format, guard
from contrastive_lab.locale import _, message
from contrastive_lab.progress import follow

CHECK = "contrastive_core.importers.frozen_encoders:check_frozen"


def known(run: Run) -> dict[str, Scores]:
    """The scores of the named encoders on a run's test images, by source, as far as they were taken."""
    found: dict[str, Scores] = {}
    for encoder in frozen.read_list():
        with contextlib.suppress(ValueError):
            if made := cache.result(frozen.KIND, values_of(encoder, run)):
                found[encoder.source] = scores_from_json(made.meta["scores"])
    return found


def follow_missing(run: Run) -> None:
    """Take the scores of the first named encoder that has none on these images; its progress, or why it has none."""
    for encoder in frozen.read_list():
        try:
            question = questions.analysis(frozen.KIND, values_of(encoder, run))
        except ValueError as error:
            st.caption(format.plain(error))
            continue
        if question.has_result():
            continue
        if (why := question.failure()) and not question.is_running():
            _say_failure(encoder, question, why)
            continue
        follow(question, message("{name}, frozen (once)", name=encoder.title), may_stop=True)
        return


def _say_failure(encoder: FrozenEncoder, question: Question, why: str) -> None:
    """Why an encoder has no scores here, in one line, and a way to try again."""
    with st.container(horizontal=True, vertical_alignment="center"):
        title = encoder.title
        st.caption(format.plain(why if title in why else message("{name}: {why}", name=title, why=why)))
        if st.button(_("Try again"), key=f"again-{question.key}", type="tertiary"):
            question.forget()
            st.rerun()


def manage() -> None:
    """A popover: the named encoders, each with a way to leave it out, and a field to name another."""
    with st.popover(_("Frozen encoders"), icon=":material/ac_unit:"):
        st.caption(
            _(
                "Pretrained encoders, judged without training: reference rows beside scores, and a choice for the "
                "lists of Samples. They are named once, for all runs."
            )
        )
        for encoder in frozen.read_list():
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                st.markdown(format.plain(encoder.title))
                if st.button(_("Remove"), key=f"frozen-{cache.digest(encoder.text)}", type="tertiary"):
                    frozen.remove(encoder.text)
                    st.rerun()
        with st.form("frozen-encoder", border=False, clear_on_submit=False):
            forms = "`timm:NAME`, `torchvision:NAME=FILE`, `run:NAME`, `/path/to/weights.pt`"
            label, key = _("Add an encoder"), "frozen-text"
            typed = st.text_input(label, placeholder="timm:NAME", key=key, help=forms).strip()
            sent = st.form_submit_button(_("Add"), icon=":material/add:")
            with guard.errors_kept("frozen-encoder", typed, sent):
                if sent and typed:
                    _add(typed)


def _add(text: str) -> None:
    """Open the weights once, then name the encoder. Raises ValueError, OSError with the reason."""
    encoder = frozen.parse(text)
    with st.spinner(_("Opening it in a separate process…")):
        client.call(CHECK, encoder)
    frozen.add(encoder)
    st.rerun()


def values_of(encoder: FrozenEncoder, run: Run) -> dict[str, object]:
    """The values of the question for an encoder's scores on a run's test images. Raises ValueError where it is gone."""
    return frozen.request(encoder, run.config, str(run.manifest.get("data_fingerprint") or ""))
