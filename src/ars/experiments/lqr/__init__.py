"""Nominal control, LSPI and ARS compared on the linear quadratic regulator (section 4.3)."""
