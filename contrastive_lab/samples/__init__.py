"""Sections of the Samples page."""
