"""`python -m contrastive_lab`: the command `contrastive-lab`."""

import sys

from contrastive_lab.desktop.command import main

if __name__ == "__main__":
    sys.exit(main())
