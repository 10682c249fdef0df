"""Sections of Explore."""
