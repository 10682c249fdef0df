"""Settings, setup, the loop, its state and its metrics."""
