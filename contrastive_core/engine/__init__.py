"""Work in child processes: tasks, the queue and results. Torch-free."""
