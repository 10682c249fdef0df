"""An HTML report on runs, recordings or files of vectors: maps, scores, verdict, the live loss view. The command
`report` and buttons on pages create it. `markup.el` escapes text from files; only button.py imports Streamlit."""
