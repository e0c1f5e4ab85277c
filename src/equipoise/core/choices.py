"""Allowed values of settings, shared by functions and by options of commands."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["MOST_BINS", "RULES", "Rule"]

#: Memory grows with bins times classes times resamples; more bins than this tell nothing more.
MOST_BINS = 10_000
#: How one of several candidates is taken: the simplest within one standard error of the best, or the best.
Rule: TypeAlias = Literal["one_standard_error", "best"]
RULES: tuple[Rule, ...] = ("one_standard_error", "best")
