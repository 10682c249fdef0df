"""What every subject uses: errors and messages, paths, the registry, progress, devices, storage and the sandbox."""
