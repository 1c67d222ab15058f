# SPDX-License-Identifier: Apache-2.0
"""How many examples a pass has room for."""


def widest(batch, fits, start):
    """Of batch, its half, its quarter …, the largest with fits(it): up from `start`, which is one of them, while they fit, or else
    down. A single example is not tried."""
    micro = start
    while micro > 1 and not fits(micro):
        micro //= 2
    while start <= micro <= batch // 2 and fits(2 * micro):
        micro *= 2
    return micro
