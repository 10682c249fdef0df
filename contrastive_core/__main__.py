"""`python -m contrastive_core COMMAND`; the commands are in `cli`."""

import os
import signal
import sys

from contrastive_core.base import local_processes
from contrastive_core.cli.main import main, stopped

if __name__ == "__main__":
    if local_processes.RENDEZVOUS in os.environ:
        local_processes.end_with_parent()
    signal.signal(signal.SIGTERM, stopped)  # until a training's loop listens
    code = main()
    if "RANK" in os.environ:  # one of several processes: gloo's threads can abort at exit
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
