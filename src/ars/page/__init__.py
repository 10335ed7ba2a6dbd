"""The report page and the gallery, made from run folders and policies."""
