"""Shared infrastructure: errors and messages, the registry, progress, devices, memory, storage and the sandbox."""
