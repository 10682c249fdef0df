"""Embed, score, compare and project spaces."""
