"""The linear quadratic regulator with unknown dynamics, section 4.3 of the paper.

The problem is in problem.py; nominal control, LSPI and ARS on it in the files of their names; the comparison behind
`ars lqr` in comparison.py.
"""

from ars.lqr.problem import Problem

__all__ = ["Problem"]
