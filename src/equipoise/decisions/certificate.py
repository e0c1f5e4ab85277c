"""The record of a certified threshold, or of the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, final

from equipoise.core.escaping import shown_name, visible

__all__ = ["Certificate", "Shortfall", "count_text", "threshold_text"]

#: Groups that are described one by one, certified ones first.
_SHOWN = 20
#: Scores whose names mean the opposite of what they are.
_SCORE_NAMES = {"entropy": "1 - normalized entropy"}


@final
@dataclass(frozen=True)
class Shortfall:
    """What is missing for a certificate.

    Attributes:
        threshold: Threshold with the best bound; None if there are too few rows for any bound below one.
        n_needed: Number of labelled rows that might be enough if the observed error is the true one; None if no
            threshold has an observed error below the limit.
        fewest: Number of accepted rows without a mistake that any certificate needs.
        is_weighted: Whether rows have weights that are not whole numbers; ``n_needed`` is then not known.
    """

    threshold: float | None
    n_needed: int | None
    fewest: int
    is_weighted: bool = False

    @property
    def about(self) -> str:
        """The number of labelled rows that might be enough, with two digits: it is a guess from an observed error."""
        return "" if self.n_needed is None else f"{float(f'{self.n_needed:.2g}'):,.0f}"


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

    @property
    def promised_error(self) -> float | None:
        """The error limit, or the bound if a coverage was requested; None without a promise."""
        return self.error_bound if self.max_error is None else self.max_error

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
        score = _SCORE_NAMES.get(score, visible(score))
        lines = self._describe_groups(score)
        # Without one threshold for all rows, there is only something to say about each group.
        if lines and self.threshold is None and self.shortfall is None:
            return "\n".join(lines)
        return "\n".join([self._sentences(score), *lines])

    def _describe_groups(self, score: str) -> list[str]:
        """Return a line for each group, except for those whose own rows are not the reason of a refusal."""
        concerned = {
            name: one
            for name, one in self.groups.items()
            if one.certified or one.shortfall is not None or self.shortfall is None
        }
        order = sorted(concerned, key=lambda name: not concerned[name].certified)
        order = list(concerned) if len(order) <= _SHOWN else order[:_SHOWN]
        lines = [
            f"{shown_name(name)}: {concerned[name]._sentences(score)}".replace("\n", " ") for name in order
        ]
        others = [one.certified for name, one in concerned.items() if name not in order]
        if others:
            lines.append(f"{len(others):,} other groups: {sum(others):,} with a threshold.")
        return lines

    def _sentences(self, score: str) -> str:
        percent = f"{100 * self.confidence:.4g}%"
        if not self.certified:
            return self._refusal(percent)
        bound = f"{100 * (self.error_bound or 0.0):.3g}%"
        observed = f"{100 * (self.observed_error or 0.0):.3g}% of {count_text(self.n_accepted)}"
        which = (
            "every prediction"
            if self.threshold == 0
            else f"predictions with {score} at least {threshold_text(self.threshold)}"
        )
        return (
            f"Accept {which}: {100 * self.coverage:.1f}% "
            f"of them [{100 * self.coverage_low:.1f}, {100 * self.coverage_high:.1f}].\nWith {percent} confidence, at "
            f"most {bound} of accepted predictions are wrong (observed {observed})."
        )

    def _refusal(self, percent: str) -> str:
        where = " in every group" if self.groups else ""
        rows = "this row" if self.n == 1 else f"these {count_text(self.n)} rows"
        if self.max_error is None:
            return f"No error limit below 100% can be promised at this coverage with {percent} confidence on {rows}."
        limit = f"{100 * self.max_error:.3g}%"
        text = f"No threshold keeps errors at or below {limit}{where} with {percent} confidence on {rows}"
        short = self.shortfall
        if short is None or self.groups:
            has_reason = any(one.shortfall is not None for one in self.groups.values())
            return (
                f"{text}." if short is None or has_reason else f"{text}, but each group has one of its own."
            )
        needed = f"About {short.about} labelled rows might be enough if the observed error is the true one."
        if self.n < short.fewest:
            more = "Label more rows." if short.n_needed is None else needed
            return f"{text}: even without a mistake, {short.fewest:,} accepted rows are needed. {more}"
        if short.threshold is not None and self.error_bound is not None:
            text += f"; the best bound is {100 * self.error_bound:.3g}% at {threshold_text(short.threshold)}"
        if short.is_weighted:
            return f"{text}. Rows with such weights need more labels than rows without."
        if short.n_needed is None:
            return (
                f"{text}. No threshold has an observed error below the limit, so more rows will hardly help."
            )
        return f"{text}. {needed}"


def count_text(value: float) -> str:
    """Return a number of rows, or a sum of weights with one decimal."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def threshold_text(value: float | None) -> str:
    """Return a threshold with three decimals, or with more if it is close to one.

    Example:
        >>> threshold_text(0.9416), threshold_text(0.99958), threshold_text(-3.25)
        ('0.942', '0.99958', '-3.250')
    """
    if value is None:
        return "none"
    decimals = 3
    while 0.99 < value < 1 and decimals < 12 and 1 - value < 2 * 10.0 ** (1 - decimals):
        decimals += 1
    return f"{value:.{decimals}f}"
