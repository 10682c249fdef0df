"""The Loss Lab's batch, its memory, and the loss on it."""
