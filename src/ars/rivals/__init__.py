"""Rivals of the paper that are not searches: learners of their own over the same tasks."""
