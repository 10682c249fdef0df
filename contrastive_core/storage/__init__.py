"""Atomic writes, locks, records of JSON and arrays, tables."""
