"""Sections of the Explore page."""
