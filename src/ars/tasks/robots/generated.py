"""The module that generated loops say they are from: Numba imports it when it loads their compiled code."""
