"""Policies from and for other programs: the authors' files, sb3-contrib, C, ONNX, JSON."""
