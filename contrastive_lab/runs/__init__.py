"""Sections of Runs."""
