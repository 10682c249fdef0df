"""What runs in child processes: tasks, the queue, results. Torch-free."""
