"""Intervals and pass@k, against scipy and by hand."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from factory.core.statistics import Z95, bootstrap_mean, pass_at_k, wilson


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(pair: tuple[int, int]) -> None:
    k, n = pair
    expected = stats.binomtest(k, n).proportion_ci(confidence_level=0.95, method="wilson")
    found = wilson(k, n)
    assert found.mean == k / n
    assert found.low == pytest.approx(expected.low, abs=1e-12) and found.high == pytest.approx(expected.high, abs=1e-12)
    assert 0.0 <= found.low <= found.mean <= found.high <= 1.0


def test_wilson_of_published_examples() -> None:
    """Newcombe 1998, table I, method 3: 81/263, 15/148, 0/20, 1/29."""
    published = {(81, 263): (0.2553, 0.3662), (15, 148): (0.0624, 0.1605), (0, 20): (0.0, 0.1611), (1, 29): (0.0061, 0.1718)}
    for (k, n), (low, high) in published.items():
        found = wilson(k, n)
        assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_the_quantile_is_the_normal_one() -> None:
    assert pytest.approx(stats.norm.ppf(0.975), abs=1e-15) == Z95


@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 5), (6, 5), (1, 0)])
def test_wilson_refuses_what_is_no_rate(k: int, n: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson(k, n)


def test_the_bootstrap_agrees_with_scipy() -> None:
    values = list(np.random.default_rng(4).beta(2, 3, size=60))
    found = bootstrap_mean(values, seed=1, resamples=8000)
    expected = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=8000, rng=np.random.default_rng(1))
    assert found.mean == pytest.approx(np.mean(values))
    # Both are Monte Carlo estimates of one quantile: standard error about 0.0006 here.
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=0.003)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=0.003)


@pytest.mark.parametrize("rate", [0.3, 0.5])
def test_the_bootstrap_covers_the_true_mean(rate: float) -> None:
    """Of 200 samples of 100, about 95 % of the intervals hold the mean; a binomial range of four deviations."""
    generator = np.random.default_rng(int(rate * 10))
    hits = 0
    for seed in range(200):
        found = bootstrap_mean([float(value) for value in generator.random(100) < rate], seed=seed, resamples=300)
        hits += found.low <= rate <= found.high
    assert hits >= 175


def test_the_bootstrap_is_a_function_of_its_seed() -> None:
    values = [0.0, 0.2, 0.9, 1.0, 0.4]
    assert bootstrap_mean(values, seed=3) == bootstrap_mean(values, seed=3)
    assert bootstrap_mean(values, seed=3, level=0.5).low >= bootstrap_mean(values, seed=3).low
    constant = bootstrap_mean([0.5] * 4)
    assert (constant.low, constant.mean, constant.high) == (0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match="no values"):
        bootstrap_mean([])


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))))
def test_pass_at_k_is_one_minus_the_share_of_failing_draws(numbers: tuple[int, int, int]) -> None:
    """1 - C(n-c, k) / C(n, k), exactly (Chen et al. 2021), which is scipy's hypergeometric P(X >= 1)."""
    c, n, k = numbers
    exact = 1 - Fraction(comb(n - c, k), comb(n, k))
    assert pass_at_k(c, n, k) == pytest.approx(float(exact), abs=1e-12)
    assert pass_at_k(c, n, k) == pytest.approx(stats.hypergeom.sf(0, n, c, k), abs=1e-9)
