"""Allowed values of settings, shared by functions and by options of commands."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["MOST_BINS", "RULES", "Rule", "ScoreSettings"]

#: Memory grows with bins times classes times resamples; more bins than this tell nothing more.
MOST_BINS = 10_000
#: How one of several candidates is taken: the simplest within one standard error of the best, or the best.
Rule: TypeAlias = Literal["one_standard_error", "best"]
RULES: tuple[Rule, ...] = ("one_standard_error", "best")


class ScoreSettings(NamedTuple):
    """How predictions are scored; the defaults of every function and command that scores.

    Attributes:
        n_bins: Bins of equal width.
        closed: Which side of a bin belongs to it, ``"right"`` or ``"left"``.
        level: Level of intervals and tests.
        n_resamples: Bootstrap resamples.
        seed: Random seed of the resamples.

    Example:
        >>> ScoreSettings(n_bins=20).n_resamples
        1000
    """

    n_bins: int = 15
    closed: str = "right"
    level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0
