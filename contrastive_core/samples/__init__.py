"""Per-sample losses, issues of samples, and the user's decisions about them. Reading needs no torch."""
