"""Encoders, heads, the memory bank and the key queue."""
