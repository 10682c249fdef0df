"""Run the command `contrastive-lab` by `python -m contrastive_lab`."""

import sys

from contrastive_lab.desktop.command import main

if __name__ == "__main__":
    sys.exit(main())
