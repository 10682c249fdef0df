"""Tools of every subject: errors and messages, paths, the registry, progress, devices, storage and the sandbox."""
