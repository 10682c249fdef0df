"""`python -m contrastive_core COMMAND`; the commands are in `cli`."""

import os
import signal
import sys

from contrastive_core.cli.main import main, stopped

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stopped)  # until a training's loop listens
    code = main()
    if "TORCHELASTIC_RUN_ID" in os.environ:  # started by torchrun: gloo's threads can abort at exit
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
