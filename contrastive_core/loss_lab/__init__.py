"""The Loss Lab's batch, memory and view."""
