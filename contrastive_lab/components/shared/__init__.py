"""Shared code of the browser components: transport, thumbnails, knobs, kernels and mounting."""
