"""Sections of Train."""
