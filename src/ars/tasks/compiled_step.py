"""What a policy does with one observation, compiled: moments, action, clipping, in one call.

Importing this module loads Numba and the compiled code, or compiles it; actors.load chooses the time. All arrays are
float64 and C-contiguous, so that there is one signature, compiled once, for every environment. The bits are those of
actors.PlainActor: sums run in the same order, and nothing is fused.
"""

import numpy as np
from numpy.typing import NDArray

from ars.compiled import compiled

FloatArray = NDArray[np.float64]


@compiled
def act(
    x: FloatArray,
    W_columns: FloatArray,  # (n, p)
    c: FloatArray,
    low: FloatArray,
    high: FloatArray,
    whole: bool,
    gather: bool,
    x_first: FloatArray,
    s1: FloatArray,
    s2: FloatArray,
    a: FloatArray,
) -> int:
    """Add x to the sums s1 and s2, and fill a with π(x), clipped and, if `whole`, rounded. Returns the index of the
    largest π(x)_i, or -1 if x or π(x) is not finite."""
    n, p = W_columns.shape
    for j in range(n):
        if not np.isfinite(x[j]):
            return -1
    if gather:
        for j in range(n):
            d = x[j] - x_first[j]
            s1[j] += d
            s2[j] += d * d
    for i in range(p):
        a[i] = -c[i]
    for j in range(n):
        for i in range(p):
            a[i] += W_columns[j, i] * x[j]
    best = 0
    for i in range(p):
        if not np.isfinite(a[i]):
            return -1
        if a[i] > a[best]:
            best = i
    for i in range(p):
        v = a[i]
        v = v if v > low[i] else low[i]  # as NumPy's clip, which returns the bound if both are zero
        v = v if v < high[i] else high[i]
        a[i] = np.rint(v) if whole else v
    return best


_zeros = np.zeros(1)
act(_zeros, np.zeros((1, 1)), _zeros, _zeros, _zeros, False, False, _zeros, _zeros, _zeros, _zeros)
