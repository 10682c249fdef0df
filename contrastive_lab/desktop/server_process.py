"""The server process of the app. It ends when the command that started it is gone."""

import sys

from streamlit.web import cli

from contrastive_core.base import local_processes

if __name__ == "__main__":
    local_processes.end_with_parent()
    cli.main(sys.argv[1:], prog_name="streamlit")
