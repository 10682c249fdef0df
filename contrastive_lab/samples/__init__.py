"""Sections of Samples."""
