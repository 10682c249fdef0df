"""Sweeps: their files, their runs, and their plots."""
