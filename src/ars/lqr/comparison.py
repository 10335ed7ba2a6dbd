"""The former place of the comparison: importing it tells where it is now."""

raise ImportError("The comparison of section 4.3 has moved: import compare from ars.experiments.lqr.comparison.")
