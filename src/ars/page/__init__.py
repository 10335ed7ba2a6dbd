"""The report page and the gallery: they read and draw, and never train."""
