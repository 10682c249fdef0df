"""What the browser parts share: transport, thumbnails, knobs, kernels, and how one is mounted."""
