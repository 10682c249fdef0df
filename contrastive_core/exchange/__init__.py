"""Import of foreign checkpoints and encoders as runs, and export of runs to other tools.

Foreign files are not trusted: the sandbox converts them (checkpoint_import.py, conversion.py). An encoder is recognized
by names and shapes (state_dict_names.py), or comes from a library (pretrained.py)."""
