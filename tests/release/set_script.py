"""Two pages with a selectbox beside them: one chooses for it and turns to the other, which is drawn
anew, as pages are that follow a task."""

import streamlit as st

from contrastive_lab import query_params


def first() -> None:
    for letter in "abc":
        if st.button(f"choose {letter}"):
            st.session_state.picked, st.session_state.again = letter, True
            st.switch_page(pages[1])


def second() -> None:
    if st.session_state.pop("again", False):
        st.rerun()
    st.button("draw")
    if st.button("back"):
        st.switch_page(pages[0])


pages = [st.Page(first, title="First"), st.Page(second, title="Second")]
page = st.navigation(pages)
query_params.arrive(page.title)
query_params.choose("letter", st.session_state.setdefault("picked", "a"))


def keep() -> None:
    st.session_state.picked = query_params.chosen("letter")


query_params.one_of(st.sidebar.selectbox, "letter", "abc", name="letter", key="letter", on_change=keep)
page.run()
st.text(f"picked {st.session_state.picked} on {page.title}")
query_params.write()
