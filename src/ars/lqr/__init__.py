"""The linear quadratic regulator with unknown dynamics (section 4.3): the problem, and compiled loops over it.

The methods and their comparison are in ars/experiments/lqr.
"""

from ars.lqr.problem import Problem

__all__ = ["Problem"]
