"""Shared infrastructure: errors and messages, paths, the registry, progress, devices, storage and the sandbox."""
