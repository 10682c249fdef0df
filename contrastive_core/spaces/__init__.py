"""Spaces: rows of a run, a file or a recording, with one or two towers; and readers of vector files."""
