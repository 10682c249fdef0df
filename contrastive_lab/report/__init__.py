"""One HTML file of some runs: maps, scores, verdict, the live loss view. Nothing else is needed.

`contrastive-lab report RUN... --out report.html` and the buttons of the pages make it. Whatever
comes from a file is text until `markup.el` puts it between tags. Only button.py sees Streamlit."""
