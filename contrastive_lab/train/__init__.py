"""Sections of the Train page."""
