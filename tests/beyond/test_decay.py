"""A gradient multiplied by the same number at every step (beyond/decay.py)."""

from fractions import Fraction

import numpy as np
import pytest
from commands import record_of
from post import assert_same_as_published

from beyond import decay


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return record_of(decay, tmp_path_factory.mktemp("decay"))


def test_figures_are_the_posts(record):
    assert_same_as_published(record)
    assert record["printed"][:2] == [
        "weight 0.5: gradient after 1 steps 0.5, 5 steps 0.03125, 10 steps 0.0009766, 20 steps 9.537e-07",
        "weight 1.5: gradient after 20 steps 3,325",
    ]


@pytest.mark.parametrize("weight", [0.5, 1.5])
def test_gradients_are_powers_of_the_weight(weight):
    # 20 factors of 1/2 or 3/2 need at most 32 bits, so float64 holds every power exactly.
    assert [Fraction(g) for g in decay.gradients(weight, 20)] == [Fraction(weight) ** k for k in range(21)]


@pytest.mark.parametrize(
    "weight, end, dtype, steps",
    [
        # The smallest float32 above 0 is 2⁻¹⁴⁹, float64's 2⁻¹⁰⁷⁴. Half of it lies midway to 0 and rounds to even: to 0.
        (0.5, 0, np.float32, 150),
        (0.5, 0, np.float64, 1075),
        # Finite numbers end below 2¹²⁸ and 2¹⁰²⁴. 1.5^k passes 2ⁿ at k = n / log2(1.5): 128 / 0.58496 = 218.8,
        # 1024 / 0.58496 = 1750.5.
        (1.5, np.inf, np.float32, 219),
        (1.5, np.inf, np.float64, 1751),
        (0.25, 0, np.float32, 75),  # 4⁻⁷⁴ = 2⁻¹⁴⁸ is there, 4⁻⁷⁵ = 2⁻¹⁵⁰ is midway
    ],
)
def test_numbers_end_where_their_format_says(weight, end, dtype, steps):
    assert decay.steps_until(end, weight, dtype) == steps


def test_float32_has_underflowed_at_lag_200_where_float64_has_not(record):
    zero, infinite = record["results"]["ends"]
    assert zero["end"] == "exactly 0" and zero["steps"]["float32"] < 200 < zero["steps"]["float64"]
    assert infinite["end"] == "infinite"
    assert decay.gradients(0.5, 200)[-1] == 2.0**-200
