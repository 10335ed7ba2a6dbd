"""The sine of a number of turns, in plain arithmetic: the same bits in Python, in compiled code and in C on any
processor, which libm does not promise."""

import math


def turn(turns: float) -> float:
    """sin(2π turns), to 1e-15: reduced to a quarter turn, then the Taylor series by Horner's rule."""
    y = turns - math.floor(turns + 0.5)  # in [-0.5, 0.5)
    if y > 0.25:
        y = 0.5 - y
    elif y < -0.25:
        y = -0.5 - y
    y = y * 6.283185307179586
    z = y * y
    return y * (
        1.0 + z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z * (1.0 / 362880.0 + z * (
            -1.0 / 39916800.0 + z * (1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (
                1.0 / 355687428096000.0 + z * (-1.0 / 121645100408832000.0)))))))))
    )  # fmt: skip
