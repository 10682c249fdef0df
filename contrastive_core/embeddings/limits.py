"""How much of a file of vectors is read at most."""

LIMIT = 2 << 30  # bytes of what is known of the rows of a table
VECTORS = 8 << 30  # of a file, and of its vectors, which are read in parts
MAX_TEXT = 500  # characters of a text that are kept
