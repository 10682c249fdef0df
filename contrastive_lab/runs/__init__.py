"""Sections of the Runs page."""
