"""Ratios of two callables, as medians of alternating pairs: the machine may be noisy."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def seconds(call: Callable[[], object], repeat: int = 1) -> float:
    """Seconds of one call, as the mean of `repeat` in a row."""
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - start) / repeat


def paired(
    ours: Callable[[], object], peer: Callable[[], object], *, pairs: int = 15, repeat: int = 1
) -> tuple[float, float, float]:
    """Medians of ours, of the peer's, and of the pairwise ratio ours / peer."""
    ours(), peer()
    times = [(seconds(ours, repeat), seconds(peer, repeat)) for _ in range(pairs)]
    mine, other = zip(*times, strict=True)
    return statistics.median(mine), statistics.median(other), statistics.median(a / b for a, b in times)
