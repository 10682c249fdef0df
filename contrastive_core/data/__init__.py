"""Data sets, image folders, overrides, samplers, augmentations. Torch-free where it only reads."""
