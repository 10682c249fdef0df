"""Shared code of the browser parts: transport, thumbnails, knobs, kernels and mounting."""
