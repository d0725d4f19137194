"""Bootstrap intervals against scipy and closed forms."""

import math
import tracemalloc
from itertools import product

import numpy as np
import pytest
import scipy.stats

from searchops import stats
from searchops.errors import FrameError
from searchops.stats import bootstrap_means, mean_interval, paired_difference

VALUES = np.array([0.0, 0.1, 0.2, 0.5, 0.5, 0.9, 1.0, 1.0, 0.3, 0.7])


def rng(seed=0):
    return np.random.default_rng(seed)


def test_intervals_are_scipys_percentile_intervals():
    values = rng(5).beta(0.5, 0.8, size=80)
    ours = mean_interval(values, rng(1), replicates=40_000)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=40_000, method="percentile", rng=rng(2)
    ).confidence_interval
    assert ours.mean == pytest.approx(values.mean(), abs=1e-15)
    spread = values.std() / math.sqrt(len(values))
    assert ours.low == pytest.approx(theirs.low, abs=0.03 * spread)
    assert ours.high == pytest.approx(theirs.high, abs=0.03 * spread)


def test_paired_differences_are_scipys():
    before, after = rng(3).random(60), rng(4).random(60)
    ours = paired_difference(after, before, rng(1), replicates=40_000, level=0.9)
    theirs = scipy.stats.bootstrap(
        (after, before),
        lambda x, y, axis: (x - y).mean(axis=axis),
        paired=True,
        n_resamples=40_000,
        method="percentile",
        confidence_level=0.9,
        rng=rng(2),
    ).confidence_interval
    spread = (after - before).std() / math.sqrt(60)
    assert ours.mean == pytest.approx((after - before).mean(), abs=1e-15)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.03 * spread)


def test_replicates_have_the_mean_and_spread_of_the_closed_form():
    means = bootstrap_means(VALUES, rng(), replicates=100_000)[:, 0]
    error = VALUES.std() / math.sqrt(len(VALUES))  # of a mean of n draws with replacement
    assert means.mean() == pytest.approx(VALUES.mean(), abs=4 * error / math.sqrt(100_000))
    assert means.std() == pytest.approx(error, rel=0.02)


def test_replicates_of_three_tasks_are_distributed_as_all_27_draws():
    values = [0.0, 1.0, 3.0]
    exact: dict[float, float] = {}
    for draw in product(values, repeat=3):
        exact[round(sum(draw) / 3, 9)] = exact.get(round(sum(draw) / 3, 9), 0) + 1 / 27
    means, counts = np.unique(bootstrap_means(values, rng(), replicates=54_000).round(9), return_counts=True)
    assert means.tolist() == sorted(exact)
    found = scipy.stats.chisquare(counts, [exact[m] * 54_000 for m in means])
    assert found.pvalue > 0.001


def test_columns_share_their_draws():
    other = 1.0 - 2.0 * VALUES
    means = bootstrap_means(np.column_stack([VALUES, other]), rng(), replicates=500)
    assert means.shape == (500, 2)
    assert means[:, 1] == pytest.approx(1.0 - 2.0 * means[:, 0])


def test_a_missing_value_counts_in_no_mean():
    with_gaps = np.array([0.0, np.nan, 1.0, np.nan])
    assert mean_interval(with_gaps, rng()) == mean_interval([0.0, 1.0], rng())
    assert mean_interval(with_gaps, rng()).tasks == 2
    means = bootstrap_means(with_gaps, rng(), replicates=20_000)[:, 0]
    drawn = means[~np.isnan(means)]
    # All four draws are among the two missing ones with probability (1/2)^4: then there is no mean.
    assert np.isnan(means).mean() == pytest.approx(1 / 16, abs=0.01)
    assert drawn.mean() == pytest.approx(0.5, abs=0.01)


def test_a_gap_in_one_column_touches_no_other():
    with_gap = np.column_stack([VALUES, np.where(VALUES == 0.9, np.nan, VALUES)])
    whole = np.column_stack([VALUES, VALUES])
    assert np.array_equal(
        bootstrap_means(with_gap, rng(), replicates=50)[:, 0], bootstrap_means(whole, rng(), replicates=50)[:, 0]
    )


def test_differences_are_taken_where_both_sides_have_a_value():
    found = paired_difference([1.0, np.nan, 0.5, 0.2], [0.5, 0.1, np.nan, 0.2], rng())
    assert (found.mean, found.tasks) == (0.25, 2)
    assert paired_difference([np.nan], [1.0], rng()).tasks == 0


def test_tasks_without_any_value_give_no_number():
    found = mean_interval([np.nan, np.nan], rng())
    assert found.tasks == 0
    assert all(math.isnan(number) for number in found[:3])
    assert mean_interval([], rng()).tasks == 0


def test_equal_values_have_an_interval_without_width():
    assert mean_interval([0.25] * 7, rng()) == (0.25, 0.25, 0.25, 7)
    assert paired_difference(VALUES, VALUES, rng())[:3] == (0.0, 0.0, 0.0)


def test_the_seed_decides_and_nothing_else():
    assert mean_interval(VALUES, rng(7)) == mean_interval(VALUES, rng(7))
    assert mean_interval(VALUES, rng(7)) != mean_interval(VALUES, rng(8))


def test_a_higher_level_gives_a_wider_interval():
    narrow, wide = (mean_interval(VALUES, rng(), level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high


def test_nothing_to_draw_from_is_an_error():
    with pytest.raises(FrameError, match="bootstrap: at least one task is needed; found none"):
        bootstrap_means([], rng())
    with pytest.raises(FrameError, match=r"one value a task on both sides is needed; found \(2,\) and \(3,\)"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0], rng())


def test_the_size_of_blocks_changes_no_number(monkeypatch):
    whole = bootstrap_means(VALUES, rng(), replicates=1_000)
    for cells in (1, 70, 9_990):
        monkeypatch.setattr(stats, "_BLOCK_CELLS", cells)
        assert np.allclose(bootstrap_means(VALUES, rng(), replicates=1_000), whole, rtol=1e-12)


def test_memory_stays_bounded_with_many_tasks():
    values = rng().random(200_000)
    tracemalloc.start()
    bootstrap_means(values, rng(), replicates=40)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6  # all replicates at once would take 64 MB for every copy of the counts
