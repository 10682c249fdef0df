"""Work in child processes: jobs, the queue and results. Torch-free."""
