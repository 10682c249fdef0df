"""Data sets, image folders, overrides, samplers and augmentations. Torch-free except for batches and augmentations."""
