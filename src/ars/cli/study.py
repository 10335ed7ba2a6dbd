"""ars study."""
