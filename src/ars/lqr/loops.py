"""Closed loops over x_{t+1} = A x_t + B u_t + w_t, compiled: rollouts, and the sums for nominal control and LSPI.

Sums run in a fixed order, without BLAS or fused multiply-add. `noise` rows hold the standard normal numbers of one
episode in the order in which they are used, so a longer draw from the same key starts with the shorter one.
"""

import numpy as np

from ars.compiled import compiled

SQRT2 = 2.0**0.5
LARGEST_STATE = 1e50  # beyond it a rollout has diverged: the variance of larger rewards would overflow


@compiled
def rollout(A, B, Q, R, W, c, noise, shift):  # type: ignore[no-untyped-def]
    """One episode under u = W x − c. noise: (H + 1, n), x_0 and the w_t.

    Returns Σ (−cost − shift), the steps, whether all was finite, and Σ d, Σ d² with d = x_t − x_0.
    """
    n, p = B.shape
    x, x_next, u = noise[0].copy(), np.empty(n), np.empty(p)
    s1, s2 = np.zeros(n), np.zeros(n)
    reward = 0.0
    for t in range(len(noise) - 1):
        for i in range(n):
            d = x[i] - noise[0, i]
            s1[i] += d
            s2[i] += d * d
        for i in range(p):
            u[i] = -c[i]
            for j in range(n):
                u[i] += W[i, j] * x[j]
        reward += -(quadratic(Q, x) + quadratic(R, u)) - shift
        transition(A, B, x, u, noise[t + 1], x_next)
        x, x_next = x_next, x
        if not np.isfinite(reward) or not np.abs(x).max() < LARGEST_STATE:
            return reward, t + 1, False, s1, s2
    return reward, len(noise) - 1, True, s1, s2


@compiled
def quadratic(S, v):  # type: ignore[no-untyped-def]
    """v'Sv."""
    total = 0.0
    for i in range(len(v)):
        for j in range(len(v)):
            total += v[i] * S[i, j] * v[j]
    return total


@compiled
def transition(A, B, x, u, w, x_next):  # type: ignore[no-untyped-def]
    """x_next = A x + B u + w, in place."""
    for i in range(len(x)):
        total = 0.0
        for j in range(len(x)):
            total += A[i, j] * x[j]
        for j in range(len(u)):
            total += B[i, j] * u[j]
        x_next[i] = total + w[i]


@compiled
def nominal_sums(A, B, sigma_u, sigma_0, noise, ZZ, ZX):  # type: ignore[no-untyped-def]
    """Add Σ z z' to ZZ: (n + p, n + p) and Σ z x_next' to ZX: (n + p, n), with z = [x; u] and u = sigma_u N(0, I).

    noise: (episodes, n + H (p + n)), x_0 (scaled by sigma_0) and then u and w of each step.
    """
    n, p = B.shape
    z, x_next = np.empty(n + p), np.empty(n)
    for e in range(len(noise)):
        episode = noise[e]
        z[:n] = sigma_0 * episode[:n]
        for step in episode[n:].reshape(-1, p + n):
            z[n:] = sigma_u * step[:p]
            transition(A, B, z[:n], z[n:], step[p:], x_next)
            for i in range(n + p):
                for j in range(n + p):
                    ZZ[i, j] += z[i] * z[j]
                for j in range(n):
                    ZX[i, j] += z[i] * x_next[j]
            z[:n] = x_next


@compiled
def svec(v, out):  # type: ignore[no-untyped-def]
    """The upper triangle of v v', row by row, with √2 off the diagonal: svec(X)'svec(Y) = tr(XY)."""
    m = 0
    for i in range(len(v)):
        out[m] = v[i] * v[i]
        m += 1
        for j in range(i + 1, len(v)):
            out[m] = SQRT2 * v[i] * v[j]
            m += 1


@compiled
def lspi_sums(A, B, Q, R, K, noise, S):  # type: ignore[no-untyped-def]
    """Add Σ ζ [ζ; ξ; cost]' to S under u = K x + N(0, I), with ζ and ξ as in lspi.py.

    noise: (episodes, n + H (p + n)), x_0 and then the exploration and w of each step.
    """
    n, p = B.shape
    f = len(S)
    z, x_next, row = np.empty(n + p), np.empty(n), np.ones(S.shape[1])
    for e in range(len(noise)):
        episode = noise[e]
        z[:n] = episode[:n]
        for step in episode[n:].reshape(-1, p + n):
            for i in range(p):
                u = step[i]
                for j in range(n):
                    u += K[i, j] * z[j]
                z[n + i] = u
            transition(A, B, z[:n], z[n:], step[p:], x_next)
            svec(z, row[: f - 1])  # row[f - 1] stays 1
            svec(x_next, row[f:-1])
            row[-1] = quadratic(Q, z[:n]) + quadratic(R, z[n:])
            for i in range(f):
                zeta_i = row[i]
                for j in range(len(row)):
                    S[i, j] += zeta_i * row[j]
            z[:n] = x_next
