"""Uncertainty of means over tasks: bootstrap replicates as counts times a matrix; numpy only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchops.errors import FrameError

REPLICATES = 20_000
_BLOCK_CELLS = 2_000_000


class Interval(NamedTuple):
    """A mean with its interval.

    Attributes:
        mean: Mean over the tasks that have a value.
        low: Lower end.
        high: Upper end.
        tasks: How many tasks have a value.
    """

    mean: float
    low: float
    high: float
    tasks: int


def bootstrap_means(
    values: ArrayLike, rng: np.random.Generator, *, replicates: int = REPLICATES
) -> NDArray[np.float64]:
    """Bootstrap replicates of column means, tasks (rows) resampled with replacement.

    All columns share each draw of tasks, so differences between columns are paired. A NaN counts
    neither in the sum nor in the number of its column's tasks.

    Shape: values (tasks, columns) or (tasks,) -> (replicates, columns).
    Source: PSA, A.3 and B.2 (20,000 task-cluster replicates).

    Raises:
        FrameError: There is no task.

    Example:
        >>> bootstrap_means([1.0, 1.0], np.random.default_rng(0), replicates=3).ravel()
        array([1., 1., 1.])
    """
    matrix = np.asarray(values, dtype=np.float64)
    if not len(matrix):
        raise FrameError("at least one task is needed", "none", where="bootstrap")
    matrix = matrix.reshape(len(matrix), -1)
    present = ~np.isnan(matrix)
    filled = np.where(present, matrix, 0.0)
    whole = bool(present.all())
    means = np.empty((replicates, matrix.shape[1]))
    start = 0
    for counts in _counts(len(matrix), replicates, rng):
        stop = start + len(counts)
        totals = len(matrix) if whole else counts @ present.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            means[start:stop] = (counts @ filled) / totals
        start = stop
    return means


def _counts(n: int, replicates: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """How often each of n tasks is drawn, for blocks of replicates: memory stays bounded, whatever n is."""
    block = max(1, _BLOCK_CELLS // n)
    for start in range(0, replicates, block):
        rows = min(block, replicates - start)
        draws = rng.integers(0, n, size=(rows, n)) + np.arange(rows)[:, None] * n
        yield np.bincount(draws.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def mean_interval(
    values: ArrayLike, rng: np.random.Generator, *, level: float = 0.95, replicates: int = REPLICATES
) -> Interval:
    """The mean over tasks with its percentile bootstrap interval; NaN tasks are left out.

    Example:
        >>> mean_interval([0.0, 1.0, float("nan")], np.random.default_rng(0)).mean
        0.5
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    array = array[~np.isnan(array)]
    if not len(array):
        return Interval(float("nan"), float("nan"), float("nan"), 0)
    means = bootstrap_means(array, rng, replicates=replicates)[:, 0]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(array.mean()), float(low), float(high), len(array))


def paired_difference(
    values: ArrayLike,
    baseline: ArrayLike,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
) -> Interval:
    """The mean of values minus baseline over the tasks that have both, with its interval.

    Raises:
        FrameError: The two are not of one length.

    Example:
        >>> paired_difference([1.0, 2.0], [0.0, 1.0], np.random.default_rng(0))
        Interval(mean=1.0, low=1.0, high=1.0, tasks=2)
    """
    first, second = np.asarray(values, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if first.shape != second.shape:
        raise FrameError(
            "one value a task on both sides is needed", f"{first.shape} and {second.shape}", where="paired_difference"
        )
    return mean_interval(first - second, rng, level=level, replicates=replicates)
