r"""Watching labelled predictions day after day, without false alarms from looking often.

A monitor bets against the claim that outcomes are as frequent as claimed. For a row with outcome :math:`x` (0 or 1) and
claimed frequency :math:`p`, the wealth of a bettor is multiplied by

.. math:: \frac{e^{\theta x}}{1 - p + p e^{\theta}}

which has mean one if the claim holds. The wealth of a monitor is the mean over bettors with different
:math:`\theta`. Bettors receive :math:`1 / (t (t + 1))` of their capital on day :math:`t`; the rest is set aside. So a
change after a long quiet time meets fresh capital. By Ville's inequality the wealth ever reaches :math:`1 / \alpha`
with probability at most :math:`\alpha`, however often it is looked at. Monitors of one family (all bands, all groups)
are averaged, and so are the families, so that all of them together keep :math:`\alpha`.

Reference:
    Ramdas et al. (2023), Game-theoretic statistics and safe anytime-valid inference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from typing import Any, final

import numpy as np
from scipy.special import logsumexp

from equipoise.core.arrays import Array
from equipoise.core.errors import DataError
from equipoise.core.predictions import Predictions
from equipoise.core.records import Record, read_record, write_record
from equipoise.core.row_identity import RowIdentity
from equipoise.decisions.accept_rule import AcceptRule

__all__ = ["SHIFTS", "Alarm", "DailyMonitor", "Evidence", "WatchedDay"]

_FORMAT, _VERSION = "equipoise.monitor", 1
#: Shifts of the log-odds that bettors bet on.
SHIFTS = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
#: Logarithm of a wealth that is as good as none, which JSON can hold.
_NOTHING = -700.0
#: Lower ends of the bands of confidence.
BANDS = np.array([0.0, 0.5, 0.7, 0.8, 0.9, 0.95])


@final
@dataclass
class Evidence:
    """The wealth of one monitor.

    Attributes:
        log_wealths: Logarithm of the wealth that every bettor has at stake.
        days: Days so far.
        lowest: Smallest logarithm of the monitor's wealth so far.
        since: Day after that; the evidence has grown since.
        n: Rows since then.
        claimed: Claimed frequency, summed over these rows.
        observed: Outcomes among these rows.
    """

    log_wealths: list[float]
    days: int = 0
    lowest: float = 0.0
    since: str = ""
    n: int = 0
    claimed: float = 0.0
    observed: float = 0.0

    @property
    def log_wealth(self) -> float:
        """Logarithm of the mean wealth, with what is not at stake yet."""
        at_stake = logsumexp(self.log_wealths) - np.log(len(self.log_wealths))
        return float(np.logaddexp(at_stake, -np.log(self.days + 1)))

    def update(self, outcome: Array, claimed: Array, shifts: Array, tolerance: float, day: str) -> None:
        """Bet on the rows of one day."""
        # A bettor on more outcomes grants the claim its tolerance upwards, one on fewer downwards.
        granted = np.clip(claimed[:, None] + np.sign(shifts) * tolerance, 0.0, 1.0)
        growth = shifts * outcome[:, None] - np.log1p(granted * np.expm1(shifts))
        self.days += 1
        at_stake = np.logaddexp(self.log_wealths, -np.log(self.days * (self.days + 1)))
        self.log_wealths = (at_stake + growth.sum(axis=0)).tolist()
        self.since = self.since or day
        self.n += len(outcome)
        self.claimed += float(claimed.sum())
        self.observed += float(outcome.sum())
        if self.log_wealth <= self.lowest:
            self.lowest, self.since = self.log_wealth, ""
            self.n, self.claimed, self.observed = 0, 0.0, 0.0


@final
@dataclass(frozen=True)
class Alarm:
    """A family of monitors whose evidence is above the limit.

    Attributes:
        family: ``"calibration"``, ``"band"``, a column of groups, ``"promise"`` or ``"accuracy"``.
        member: The band or group with the most evidence; empty if there is only one monitor.
        evidence: Wealth of the family.
        since: Day since which the evidence of this member grows.
        claimed: Claimed frequency since then.
        observed: Observed frequency since then.
        n: Rows since then.
    """

    family: str
    member: str
    evidence: float
    since: str
    claimed: float
    observed: float
    n: int

    def __str__(self) -> str:
        where = f" in {self.member}" if self.member else ""
        outcome = "wrong" if self.family in ("promise", "accuracy") else "right"
        return (
            f"{self.family}{where}: {100 * self.observed:.1f}% of {self.n:,} predictions are {outcome} since "
            f"{self.since}, claimed {100 * self.claimed:.1f}% (evidence {self.evidence:.3g})"
        )


@final
@dataclass(frozen=True)
class WatchedDay:
    """What one day added.

    Attributes:
        day: The day.
        n: Rows of this day.
        missed: Days without rows since the last one.
        evidence: Wealth of every family after this day.
        mean_evidence: Mean of these.
        limit: Mean wealth from which on there is an alarm.
        alarms: At an alarm, the families above the limit.
    """

    day: str
    n: int
    missed: tuple[str, ...]
    evidence: Mapping[str, float]
    mean_evidence: float
    limit: float
    alarms: tuple[Alarm, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    def describe_missed(self) -> str:
        """Return the days without rows in one line."""
        shown = ", ".join(self.missed[:5]) + (" ..." if len(self.missed) > 5 else "")
        return f"Warning: no rows for {len(self.missed)} days: {shown}."

    def describe(self) -> str:
        """Return the day in a few lines."""
        lines = [f"{self.day}: {self.n:,} rows."]
        if self.missed:
            lines.append(self.describe_missed())
        if self.alarms:
            lines += [f"ALARM  {one}." for one in self.alarms]
            lines.append(
                "`equipoise report` on the states of the days shows what a refitted calibrator would gain."
            )
        else:
            most = max(self.evidence, key=lambda name: self.evidence[name])
            lines.append(
                f"No alarm. Evidence {self.mean_evidence:.3g}, the limit is {self.limit:.4g}; most of it: {most}, "
                f"{self.evidence[most]:.3g}."
            )
        return "\n".join(lines)


@final
@dataclass
class DailyMonitor:
    """Monitors of calibration, of the promise of a rule and of accuracy, continued day after day.

    If all claims hold, there is ever an alarm with probability at most ``alpha``, over all days and monitors together.

    Args:
        alpha: Probability of a false alarm, over all days and monitors together.
        tolerance: Deviation of frequencies from confidences that is no reason for an alarm.
        by: Columns of groups to watch one by one.
        min_accuracy: Accuracy that is claimed; None does not watch it.
        max_error: Error among accepted predictions that is claimed; set by :meth:`watch` from its rule.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> monitor = DailyMonitor(alpha=0.05)
        >>> for day in range(1, 21):
        ...     claimed = rng.uniform(0.6, 1, 500)
        ...     right = rng.random(500) < claimed - (0.1 if day > 10 else 0.0)
        ...     rows = Predictions(predicted=np.ones(500, int), confidence=claimed, labels=right.astype(int))
        ...     found = monitor.watch(rows, day=f"2026-03-{day:02}")
        ...     if found.alarms:
        ...         break
        >>> found.day, found.alarms[0].family
        ('2026-03-11', 'band')
    """

    alpha: float = 0.05
    tolerance: float = 0.0
    by: tuple[str, ...] = ()
    min_accuracy: float | None = None
    max_error: float | None = None
    days: dict[str, str] = field(default_factory=dict)
    evidence: dict[str, dict[str, Evidence]] = field(default_factory=dict)
    identity: RowIdentity = field(default_factory=RowIdentity, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = "DailyMonitor"
        if not 0 < self.alpha < 1:
            raise ValueError(f"{where}: `alpha` must be between 0 and 1, got {self.alpha}. 5% is 0.05.")
        if not 0 <= self.tolerance < 0.5:
            raise ValueError(f"{where}: `tolerance` must be at least 0 and below 0.5, got {self.tolerance}.")
        if self.min_accuracy is not None and not 0 < self.min_accuracy < 1:
            raise ValueError(f"{where}: `min_accuracy` must be between 0 and 1, got {self.min_accuracy}.")

    def watch(self, predictions: Predictions, *, day: str, rule: AcceptRule | None = None) -> WatchedDay:
        """Add the labelled rows of one day.

        Args:
            predictions: Labelled predictions.
            day: The day, as 2026-03-09; later than all days before.
            rule: A certified rule whose promise is watched too; the same every day.

        Raises:
            DataError: If the day or some of these rows were added before, groups are missing, or the rule is not that
                of the first day.
        """
        missed = self._check_day(predictions, day)
        rows = RowIdentity()
        rows.update(predictions)
        shared = rows.overlap(self.identity)
        if shared:
            raise DataError(
                f"DailyMonitor.watch: {shared} were added on an earlier day, so they would count twice. Leave them out."
            )
        if rule is None and "promise" in self.evidence:
            raise DataError(
                "DailyMonitor.watch: expected the rule of the first day, got none. Give it every day (--decision)."
            )
        if rule is not None and self.days and "promise" not in self.evidence:
            # Evidence of a family that comes later could not be averaged with that of the others.
            raise DataError(
                "DailyMonitor.watch: expected no rule, as on the first day, got one. Start a new monitor for it."
            )
        if predictions.weights is not None:
            raise DataError(
                "DailyMonitor.watch: expected rows without weights, got weights. Drop the weights."
            )
        correct = predictions.correct.astype(np.float64)
        claimed = predictions.confidence.astype(np.float64)
        both = np.concatenate([-SHIFTS[::-1], SHIFTS])
        self._bet("calibration", np.full(len(correct), ""), correct, claimed, both, self.tolerance, day)
        band = np.searchsorted(BANDS, claimed, side="right") - 1
        ends = [*BANDS[1:].tolist(), 1.0]
        names = np.array([f"confidence {low:g} to {high:g}" for low, high in zip(BANDS, ends, strict=True)])
        for name in names:  # every band counts from the first day on
            self._member("band", str(name), len(both))
        self._bet("band", names[band], correct, claimed, both, self.tolerance, day)
        for column in self.by:
            if column not in predictions.groups:
                raise DataError(
                    f"DailyMonitor.watch: the predictions have no column {column!r}. Give it in `groups`."
                )
            self._bet(
                column,
                predictions.groups[column].astype(np.str_),
                correct,
                claimed,
                both,
                self.tolerance,
                day,
            )
        if rule is not None:
            limit = rule.certificate.max_error or rule.certificate.error_bound
            if limit is None or self.max_error not in (None, limit):
                raise DataError(
                    "DailyMonitor.watch: expected the rule of the first day, got another one. Start anew."
                )
            self.max_error = limit
            accepted = rule(predictions)
            self._one_sided("promise", 1 - correct[accepted], limit, day)
        if self.min_accuracy is not None:
            self._one_sided("accuracy", 1 - correct, 1 - self.min_accuracy, day)
        self.days[day] = predictions.rows.fingerprint
        self.identity.merge(rows)
        return self._result(day, len(correct), missed)

    def _one_sided(self, family: str, wrong: Array, limit: float, day: str) -> None:
        self._bet(family, np.full(len(wrong), ""), wrong, np.full(len(wrong), limit), SHIFTS, 0.0, day)

    def _member(self, family: str, name: str, n_bettors: int) -> Evidence:
        """Return a member of a family; a new one starts with the mean wealth, so that the mean stays a fair game."""
        members = self.evidence.setdefault(family, {})
        if name not in members:
            old = list(members.values())
            days = old[0].days if old else 0
            if days:
                at_stake = float(logsumexp([one.log_wealths for one in old])) - np.log(len(old) * n_bettors)
                members[name] = Evidence([float(at_stake)] * n_bettors, days)
                members[name].lowest = members[name].log_wealth
            else:
                members[name] = Evidence([_NOTHING] * n_bettors)
        return members[name]

    def _bet(
        self,
        family: str,
        member: Array,
        outcome: Array,
        claimed: Array,
        shifts: Array,
        tolerance: float,
        day: str,
    ) -> None:
        for name in np.unique(member).tolist() or [""]:
            self._member(family, name, len(shifts))
        for name, one in self.evidence[family].items():
            kept = member == name
            one.update(outcome[kept], claimed[kept], shifts, tolerance, day)

    def _check_day(self, predictions: Predictions, day: str) -> tuple[str, ...]:
        where = "DailyMonitor.watch"
        try:
            today = date.fromisoformat(day)
        except ValueError:
            raise DataError(f"{where}: `day` must be a date such as 2026-03-09, got {day!r}.") from None
        if day in self.days:
            raise DataError(f"{where}: {day} was added before, so its rows would count twice. Leave it out.")
        if predictions.rows.fingerprint in self.days.values():
            before = next(one for one, rows in self.days.items() if rows == predictions.rows.fingerprint)
            raise DataError(
                f"{where}: these rows were added on {before}, so they would count twice. Leave them out."
            )
        if not self.days:
            return ()
        last = date.fromisoformat(max(self.days))
        if today < last:
            raise DataError(f"{where}: expected a day after {last}, got {day}. Add the days in order.")
        return tuple(str(last + timedelta(days=step)) for step in range(1, (today - last).days))

    def _result(self, day: str, n: int, missed: tuple[str, ...]) -> WatchedDay:
        limit = 1 / self.alpha
        wealth = {
            family: float(np.exp(min(_log_mean(members), 700.0))) for family, members in self.evidence.items()
        }
        mean = sum(wealth.values()) / len(wealth)
        alarms = []
        for family, members in self.evidence.items() if mean >= limit else ():
            worst = max(members, key=lambda name: members[name].log_wealth)
            one = members[worst]
            rows = max(one.n, 1)
            rates = one.claimed / rows, one.observed / rows
            if wealth[family] >= limit:
                alarms.append(Alarm(family, worst, wealth[family], one.since or day, *rates, one.n))
        return WatchedDay(day, n, missed, wealth, mean, limit, tuple(alarms))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the monitor as JSON with a checksum."""
        plain, (identity, hashes) = asdict(self), self.identity.parts()
        write_record(path, _FORMAT, _VERSION, Record({**plain, "identity": identity}, hashes))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DailyMonitor:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: If the file is something else, is from a newer version, or was changed.
        """
        record = read_record(path, _FORMAT, _VERSION)
        plain, identity = dict(record.plain), RowIdentity()
        try:
            identity.fill(plain.pop("identity"), record.arrays)
            evidence = {
                family: {name: Evidence(**one) for name, one in members.items()}
                for family, members in plain.pop("evidence").items()
            }
            by = tuple(plain.pop("by"))
            return cls(**plain, by=by, evidence=evidence, identity=identity)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"DailyMonitor.load: {path} is damaged ({error}). Start a new one.") from None


def _log_mean(members: Mapping[str, Evidence]) -> float:
    return float(logsumexp([one.log_wealth for one in members.values()]) - np.log(len(members)))
