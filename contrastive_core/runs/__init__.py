"""Checkpoints of a run: written, verified, exported."""
