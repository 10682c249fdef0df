"""Sections of the Loss Lab."""
