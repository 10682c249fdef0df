"""Several processes: collectives and sharded rows."""
