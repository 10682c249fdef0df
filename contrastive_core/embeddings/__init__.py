"""Embeddings: the set, what it is of, file formats, attached images, the cache."""
