"""Sections of the Methods page."""
