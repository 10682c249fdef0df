"""The process that serves the app. It ends itself once the command that started it and all other holders are gone.

The command stops it too, and sooner; but a command that was killed, or interrupted between two of its lines, cannot.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

from streamlit.web import cli

from contrastive_core.records import is_process
from contrastive_lab.desktop import serving

POLL = 0.5  # seconds between two looks at the command
PATIENCE = 5.0  # seconds that Streamlit gets to close its connections


def main(arguments: Sequence[str]) -> None:
    """Serve the app. Args: arguments: process number and start of the command, then arguments of `streamlit`."""
    pid, started, *of_streamlit = arguments
    threading.Thread(target=_end_with, args=(int(pid), float(started)), daemon=True).start()
    cli.main(of_streamlit, prog_name="streamlit")


def _end_with(pid: int, started: float) -> None:
    while is_process(pid, started) or serving.is_held(os.getpid()):
        time.sleep(POLL)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
