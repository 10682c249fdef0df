"""Per-sample losses, what is odd about a sample, what a person decided. Torch-free to read."""
