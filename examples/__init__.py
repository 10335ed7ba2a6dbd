"""Examples; with this file, `examples.unitree` is found here and not in a package of the same name elsewhere."""
