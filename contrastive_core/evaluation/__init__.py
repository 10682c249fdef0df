"""Embed, score, compare, project."""
