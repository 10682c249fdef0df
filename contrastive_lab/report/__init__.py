"""One HTML file of runs, recordings or files of vectors: maps, scores, verdict, the live loss view. The command
`report` and the buttons of the pages make it. Text from a file is escaped by `markup.el`; only button.py sees
Streamlit."""
