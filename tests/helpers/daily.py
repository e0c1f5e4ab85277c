"""Which cases of a cross-product are tested every day; the others wait for ``make test-slow``."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def daily(cases: Iterable[Any], keep: Collection[Any]) -> list[Any]:
    """Return all cases as parameters, with the mark ``slow`` on those that need not be tested every day."""
    cases = list(cases)
    if lost := [case for case in keep if case not in cases]:
        raise ValueError(f"daily: {lost} are not among the cases.")
    return [case if case in keep else pytest.param(case, marks=pytest.mark.slow) for case in cases]
