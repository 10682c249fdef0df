"""Training: setup, the loop, its state, optimizers and the monitor."""
