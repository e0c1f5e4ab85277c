"""The record of a certified threshold, or of the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, final

__all__ = ["Certificate", "Shortfall"]


@final
@dataclass(frozen=True)
class Shortfall:
    """What is missing for a certificate.

    Attributes:
        threshold: Threshold with the best bound; None if there are too few rows for any bound below one.
        n_needed: Number of labelled rows that might be enough if the observed error is the true one; None if no
            threshold has an observed error below the limit.
        fewest: Number of accepted rows without a mistake that any certificate needs.
    """

    threshold: float | None
    n_needed: int | None
    fewest: int


@final
@dataclass(frozen=True)
class Certificate:
    """A threshold on a score and what is promised about the predictions that it accepts.

    Attributes:
        certified: Whether there is a threshold that keeps the promise.
        threshold: The smallest accepted score; None if nothing is certified, or if every group has its own.
        coverage: Share of the labelled rows that are accepted.
        coverage_low: Lower end of its interval (Clopper-Pearson).
        coverage_high: Upper end.
        observed_error: Error rate among accepted rows; None without any.
        error_bound: Upper bound of the error that is promised. Without a certificate, the smallest limit that these
            rows could certify; None if there is none.
        n: Number of labelled rows.
        n_accepted: Number of accepted rows.
        max_error: Error limit; None if a coverage was requested instead.
        confidence: Probability with which the promise holds, over the draw of the labelled rows.
        groups: Certificates by group.
        shortfall: What is missing, if nothing is certified. Not part of :meth:`as_dict`.
    """

    certified: bool
    threshold: float | None
    coverage: float
    coverage_low: float
    coverage_high: float
    observed_error: float | None
    error_bound: float | None
    n: float
    n_accepted: float
    max_error: float | None
    confidence: float
    groups: Mapping[str, Certificate] = field(default_factory=dict)
    shortfall: Shortfall | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        names = [one.name for one in fields(self) if one.name not in ("groups", "shortfall")]
        plain: dict[str, Any] = {name: getattr(self, name) for name in names}
        plain["groups"] = {name: one.as_dict() for name, one in self.groups.items()}
        return plain

    def describe(self, score: str = "confidence") -> str:
        """Return the result in one to three sentences, and a paragraph per group.

        Args:
            score: Name of the score.
        """
        if self.groups:
            lines = [f"{name}: {one.describe(score)}".replace("\n", " ") for name, one in self.groups.items()]
            if self.threshold is None:
                return "\n".join(lines)
            return "\n".join([self._sentences(score), *lines])
        return self._sentences(score)

    def _sentences(self, score: str) -> str:
        percent = f"{100 * self.confidence:.4g}%"
        if not self.certified:
            return self._refusal(percent)
        bound = f"{100 * (self.error_bound or 0.0):.3g}%"
        observed = f"{100 * (self.observed_error or 0.0):.3g}% of {self.n_accepted:,.10g}"
        which = (
            "every prediction"
            if self.threshold == 0
            else f"predictions with {score} at least {_threshold_text(self.threshold)}"
        )
        return (
            f"Accept {which}: {100 * self.coverage:.1f}% "
            f"of them [{100 * self.coverage_low:.1f}, {100 * self.coverage_high:.1f}].\nWith {percent} confidence, at "
            f"most {bound} of accepted predictions are wrong (observed {observed})."
        )

    def _refusal(self, percent: str) -> str:
        limit = "" if self.max_error is None else f" at or below {100 * self.max_error:.3g}%"
        text = f"No threshold keeps errors{limit} with {percent} confidence on these {self.n:,.10g} rows"
        short = self.shortfall
        if short is None:
            return text + "."
        if self.n < short.fewest:
            return (
                f"{text}: even without a mistake, {short.fewest:,} accepted rows are needed. Label more rows."
            )
        if short.threshold is not None and self.error_bound is not None:
            text += f"; the best bound is {100 * self.error_bound:.3g}% at {_threshold_text(short.threshold)}"
        if short.n_needed is None:
            return (
                f"{text}. No threshold has an observed error below the limit, so more rows will hardly help."
            )
        # Two digits: the number is a guess from an observed error.
        about = f"{float(f'{short.n_needed:.2g}'):,.0f}"
        return f"{text}. About {about} labelled rows might be enough if the observed error is the true one."


def _threshold_text(value: float | None) -> str:
    """Return a threshold with three decimals, or with more if it is close to one.

    Example:
        >>> _threshold_text(0.9416), _threshold_text(0.99958), _threshold_text(-3.25)
        ('0.942', '0.99958', '-3.250')
    """
    if value is None:
        return "none"
    decimals = 3
    while 0.99 < value < 1 and decimals < 12 and 1 - value < 2 * 10.0 ** (1 - decimals):
        decimals += 1
    return f"{value:.{decimals}f}"
