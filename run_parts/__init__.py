"""Parts of the Runs page, a file each: the list, one run, the queue, sweeps, the import."""
