"""The example of the front page for texts: questions and answers by two models, with relevance judgments."""

import streamlit as st

from contrastive_core.base.paths import data_home
from contrastive_core.spaces import example_questions, loaded_vectors
from contrastive_core.spaces.open_vectors import open_vectors
from contrastive_lab import guard, path_input, query_params
from contrastive_lab.locale import _
from contrastive_lab.samples.example import ASKED, OFFERED

NAME = "questions"


def show() -> None:
    """Open the example if the URL asks for it and the front page led there. For links from elsewhere, ask first."""
    asked = query_params.take(ASKED) == NAME or query_params.kept_value(ASKED) == NAME
    if asked and OFFERED not in st.session_state:
        query_params.keep(**{ASKED: NAME})
        asked = st.button(_("Make the example with questions and answers"), icon=":material/forum:")
    if asked:
        query_params.keep(**{ASKED: None})
        with guard.errors_shown():
            with st.spinner(_("Encoding 1,920 sentences with two small models…")):
                address = make()
            query_params.begin(address)
            st.rerun()


def make() -> dict[str, str]:
    """Write the example, open its vectors, and return the address of their comparison. Raises: ValueError; OSError."""
    folder = data_home() / "examples" / NAME
    names = [loaded_vectors.PREFIX + open_vectors(file, file.name) for file in example_questions.write(folder)]
    return {"runs": ",".join(names), "qrels": path_input.remember(folder / example_questions.JUDGMENTS)}
