"""Sweep files: their grid, their runs, their figures."""
