"""Runs as the files of other tools: an encoder as ONNX, curves and embedding for TensorBoard. Each tool is an extra of
the same name; nothing here is imported before it is asked for."""
