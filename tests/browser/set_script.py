"""A page that chooses for a selectbox and is drawn anew before its end, as pages are that follow a
task which they have just started."""

import streamlit as st

from contrastive_lab import query_params

query_params.arrive("here")
for letter in "abc":
    if st.button(f"choose {letter}"):
        query_params.choose("picked", letter)
        st.session_state.again = 2
picked = query_params.one_of(st.selectbox, "letter", "abc", name="picked", key="picked")
st.text(f"picked {picked}")
if st.session_state.get("again"):
    st.session_state.again -= 1
    st.rerun()
query_params.write()
