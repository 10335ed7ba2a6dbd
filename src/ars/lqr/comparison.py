"""The former place of the comparison: importing it raises an error that names the new place."""

raise ImportError("The comparison of section 4.3 has moved: import compare from ars.experiments.lqr.comparison.")
