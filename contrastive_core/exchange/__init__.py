"""Import of foreign checkpoints and encoders as runs, and export of runs to other tools.

Foreign files are not trusted: the sandbox converts them (checkpoint_import.py, checkpoint_formats.py). An encoder is
recognized by names and shapes, or comes from a library."""
