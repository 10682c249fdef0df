"""Sections of Methods."""
