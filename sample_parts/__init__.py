"""Parts of the Samples page: what is chosen, the list, one sample, across runs, training again."""
