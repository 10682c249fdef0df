"""One HTML file of some runs: maps, scores, verdict, the live loss view. `contrastive-lab report` and the buttons of
the pages make it. Text from a file is escaped by `markup.el`. Only button.py sees Streamlit."""
