"""Sections of Compare."""
