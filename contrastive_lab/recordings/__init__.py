"""What pages show of a recording: how far it is, its figures, its rows at each step."""
