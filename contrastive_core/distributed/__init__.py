"""Many processes: collectives, and rows that lie in parts."""
