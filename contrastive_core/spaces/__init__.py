"""Spaces: rows of a run, a file or a recording, with one side or two; readers of files."""
