"""Import checkpoints from elsewhere as runs. Their files are not trusted. The sandbox converts a file (checkpoint.py,
conversion.py). Its encoder is recognized from names and shapes (state_dict_names.py, heads.py), or comes from a library
(pretrained.py). checkpoint.py makes a run of it."""
